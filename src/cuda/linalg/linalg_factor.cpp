// Cholesky, QR, eigenvalues of Hermitian matrices, singular values. Match aten operators of the same names (torch 2.15,
// CUDA with cuSOLVER) except for the signs of vectors; float32, float64 and their complex dtypes; any strides.
#include <algorithm>

#include "src/cuda/linalg/linalg.h"
#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/linalg_library.h"
#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/factory.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cuda {
namespace {

// Copies the first columns of `from` [from_rows, ...] to `to` [rows, columns]; both column-major.
void take(Part::Kind kind, int64_t count, int64_t rows, int64_t columns, Tensor& to, int64_t to_columns,
          const Tensor& from, int64_t from_rows, int64_t from_columns) {
  const int64_t to_rows = rows;
  launch_part({kind, count, rows, columns, to_rows * to_columns, 1, to_rows, from_rows * from_columns, 1, from_rows},
              to.data(), from.data(), static_cast<int>(to.dtype()), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

// Decomposes matrices in one launch if they are small. False if that fails for one of them: it has an infinite number
// or NaN, whose error cuSOLVER tells.
bool small_svd(const Tensor& a, int64_t rows, int64_t columns, bool conjugates_left, Tensor& s, Tensor* left,
               Tensor* right, Tensor& info) {
  const int64_t left_columns = left ? left->numel() / (s.numel() / columns * rows) : columns;
  if (!small_svd_fits(rows, columns, static_cast<int64_t>(a.itemsize()), left_columns > columns)) return false;
  launch_small_svd(
      {a.data(), static_cast<int>(a.dtype()), int_size("linalg.svd", s.numel() / columns), static_cast<int>(rows),
       static_cast<int>(columns), s.data(), left ? left->data() : nullptr, static_cast<int>(left_columns),
       right ? right->data() : nullptr, conjugates_left, !conjugates_left, info.data_as<int32_t>()},
      current_stream());
  SCONCE_CUDA(cudaGetLastError());
  Tensor here = Tensor::empty(info.sizes(), DType::kInt32);
  copy(info, here, true);
  const auto* const failed = here.data_as<int32_t>();
  return std::all_of(failed, failed + here.numel(), [](int32_t f) { return f == 0; });
}

}  // namespace

std::array<Tensor, 2> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  check_square("linalg.cholesky", self);
  const LinalgScope scope("linalg.cholesky", self);
  Tensor l = column_major_copy(self), info = zeroed_info(batch_shape(self), self.device());
  if (l.numel() > 0) {
    const Matrices a(l);
    factor_cholesky(a, upper ? Triangle::kUpper : Triangle::kLower, info.data_as<int32_t>());
    launch_part({upper ? Part::kUpper : Part::kLower, a.count, a.rows, a.columns, a.rows * a.columns, 1, a.rows,
                 a.rows * a.columns, 1, a.rows},
                l.data(), l.data(), static_cast<int>(l.dtype()), current_stream());
    SCONCE_CUDA(cudaGetLastError());
  }
  if (check_errors) check_info(info, "linalg.cholesky_ex", self.dim() == 2);
  return {l, info};
}

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  const char* const name = "torch.linalg.householder_product";
  check_householder(name, input, tau);
  check_matrices(name, input);
  const LinalgScope scope(name, input);
  Tensor out = column_major_copy(input);
  const Tensor packed = contiguous(tau);
  const int64_t k = tau.size(tau.dim() - 1);
  if (out.numel() > 0) make_q(Matrices(out), packed.data(), k, k);
  return out;
}

std::array<Tensor, 2> linalg_qr(const Tensor& A, std::string_view mode) {
  check_matrices("linalg.qr", A);
  check_qr_mode(mode);
  const LinalgScope scope("linalg.qr", A);
  const int64_t m = A.size(A.dim() - 2), n = A.size(A.dim() - 1), k = std::min(m, n);
  const bool complete = mode == "complete", wants_q = mode != "r";
  const Shape batch = batch_shape(A);
  const int64_t count = count_of(batch), rows = complete ? m : k;
  Tensor q = wants_q ? empty_matrices(with_matrix(batch, m, rows), A.dtype(), true, A.device())
                     : no_matrix(A.dtype(), A.device());
  Tensor r = empty_matrices(with_matrix(batch, rows, n), A.dtype(), true, A.device());
  if (A.numel() == 0) {
    fill_zero(r);
    if (wants_q && q.numel() > 0) fill_identity(q);  // there are no columns
    return {q, r};
  }
  const Tensor factored = column_major_copy(A);
  const Tensor tau = Tensor::empty(with_last(batch, k), A.dtype(), A.device());
  factor_qr(Matrices(factored), tau.data());
  take(Part::kUpper, count, rows, n, r, n, factored, m, n);
  if (wants_q) {
    if (rows > k) fill_zero(q);
    take(Part::kAll, count, m, k, q, rows, factored, m, n);
    make_q(Matrices(q), tau.data(), k, k);
  }
  return {q, r};
}

std::array<Tensor, 2> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v) {
  check_square("linalg.eigh", A);
  const bool lower = reads_lower(UPLO);
  const LinalgScope scope("linalg.eigh", A);
  const Shape batch = batch_shape(A);
  Tensor values = Tensor::empty(with_last(batch, A.size(A.dim() - 1)), value_dtype(A.dtype()), A.device());
  Tensor vectors = column_major_copy(A), info = zeroed_info(batch, A.device());
  if (A.numel() > 0)
    eigen_symmetric(Matrices(vectors), lower ? Triangle::kLower : Triangle::kUpper, compute_v, values.data(),
                    info.data_as<int32_t>());
  check_info(info, "linalg.eigh", A.dim() == 2);
  return {values, compute_v ? vectors : no_matrix(A.dtype(), A.device())};
}

std::array<Tensor, 3> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                  std::optional<std::string_view> driver) {
  check_matrices("linalg.svd", A);
  SCONCE_CHECK(!driver || *driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda", kInvalidArgument,
               "linalg.svd: unknown driver '", driver.value_or(""), "', expected gesvd, gesvdj or gesvda");
  const LinalgScope scope("linalg.svd", A);
  const int64_t m = A.size(A.dim() - 2), n = A.size(A.dim() - 1), k = std::min(m, n);
  const Shape batch = batch_shape(A);
  const DType dtype = A.dtype();
  const Device device = A.device();
  Tensor s = Tensor::empty(with_last(batch, k), value_dtype(dtype), device);
  const auto none = [&] { return no_matrix(dtype, device); };
  const Shape u_sizes = with_matrix(batch, m, full_matrices ? m : k),
              vh_sizes = with_matrix(batch, full_matrices ? n : k, n);
  if (A.numel() == 0) {
    Tensor u = compute_uv ? empty_matrices(u_sizes, dtype, true, device) : none(),
           vh = compute_uv ? empty_matrices(vh_sizes, dtype, false, device) : none();
    for (Tensor* full : {&u, &vh})
      if (compute_uv && full_matrices && full->numel() > 0) fill_identity(*full);
    return {u, s, vh};
  }
  const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  Tensor info = Tensor::empty(batch, DType::kInt32, device);
  const bool tall = m >= n;
  // cuSOLVER takes tall matrices. For a wide A we decompose A^H = U' S V'^H, which gives A = V' S U'^H.
  Tensor a = column_major_copy(tall ? A : cpu::transpose(A, -2, -1));
  if (!tall) conjugate(a);
  const int64_t longer = std::max(m, n);
  Tensor u = compute_uv ? empty_matrices(u_sizes, dtype, true, device) : none(),
         vh = compute_uv ? empty_matrices(vh_sizes, dtype, false, device) : none();
  // Both are written column by column: V^H is row-major.
  Tensor &first = tall ? u : vh, &second = tall ? vh : u;
  if (small_svd(a, longer, k, !tall, s, compute_uv ? &first : nullptr, compute_uv ? &second : nullptr, info))
    return {u, s, vh};
  Tensor left =
      compute_uv ? empty_matrices(with_matrix(batch, longer, full_matrices ? longer : k), dtype, true, device) : none();
  Tensor right = compute_uv ? empty_matrices(with_matrix(batch, k, k), dtype, true, device) : none();
  singular_values(Matrices(a), job, s.data(), left.data(), right.data(), info.data_as<int32_t>());
  check_info(info, "linalg.svd", A.dim() == 2);
  if (!compute_uv) return {left, s, right};
  if (tall) {
    copy(right, vh, false);
    return {left, s, vh};
  }
  conjugate(left);
  conjugate(right);
  copy(cpu::transpose(right, -2, -1), u, false);
  return {u, s, cpu::transpose(left, -2, -1)};
}

}  // namespace sconce::cuda
