"""Factors, solutions and functions of matrices: the dimensions before the last two are independent."""
from sconce._rows.registry import rule
from sconce._rows.values import Constant, Refused, Rows


@rule("linalg_inv_ex inverse linalg_inv linalg_cholesky_ex linalg_cholesky cholesky linalg_qr qr _linalg_svd linalg_svd svd "
      "linalg_svdvals _linalg_eigh linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals _linalg_eigvals linalg_lu_factor_ex "
      "linalg_lu_factor linalg_lu lu_unpack linalg_lu_solve _linalg_solve_ex linalg_solve_ex linalg_solve linalg_solve_triangular "
      "triangular_solve cholesky_solve cholesky_inverse geqrf ormqr linalg_householder_product linalg_matrix_exp matrix_exp "
      "_linalg_det linalg_det _linalg_slogdet linalg_slogdet slogdet logdet linalg_pinv pinverse linalg_ldl_factor_ex linalg_ldl_solve")
def matrices(call):
    tensors = call.tensors()
    ranks = [len(call.shape_of(one)) for one in tensors]
    rows = [(call.value_of(one), rank) for one, rank in zip(tensors, ranks)]
    if len({value.place() for value, _ in rows if isinstance(value, Rows)}) > 1:
        raise Refused("joins each row with other rows")
    # Without matching ranks, which of a constant's dimensions meets the batch depends on sizes.
    if any(isinstance(value, Constant) for value, _ in rows) and len(set(ranks)) > 1:
        raise Refused("joins each row with constants of other dimensions")
    value = next(value for value, _ in rows if isinstance(value, Rows))
    if value.dim >= max(ranks) - 2 or any(value.dim >= rank - 1 for rank in ranks):
        raise Refused("takes the batch for a dimension of its matrices")
    return call.each(value.data())
