"""Writes tests/data/factored.cases: python tests/cpu/make_factored_cases.py    (torch 2.15 with LAPACK)"""
import pathlib

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10, torch.complex64: 2e-4, torch.complex128: 1e-10}
LAYOUTS = ("packed", "permuted", "sliced", "offset")


def matrix(s, dtype, *shape):
    return s.strided(torch.randn(shape, dtype=dtype, generator=s.g), LAYOUTS)


def factor(s, dtype, batch, n, upper):
    a = torch.randn(*batch, n, n, dtype=dtype, generator=s.g)
    spd = a @ a.mH + n * torch.eye(n, dtype=dtype)
    l = torch.linalg.cholesky(spd) if n else spd
    return s.strided(l.mH.resolve_conj().contiguous() if upper else l.contiguous(), LAYOUTS)


def values(s, out):
    for dtype, tolerance in TOLERANCE.items():
        t = {"tolerance": tolerance}
        for batch in ((), (2, 2), (0,)):
            for n in (1, 5, 0):
                for upper in (False, True):
                    u = factor(s, dtype, batch, n, upper)
                    out.add("cholesky_inverse", aten.cholesky_inverse, u, upper, **t)
                    out.add("cholesky_solve", aten.cholesky_solve, matrix(s, dtype, *batch, n, 3), u, upper, **t)
                    a = matrix(s, dtype, *batch, n, n)
                    a = a + n * torch.eye(n, dtype=dtype)
                    for transpose in (False, True):
                        out.add("triangular_solve", aten.triangular_solve, matrix(s, dtype, *batch, n, 2), a, upper,
                                transpose, bool(s.below(2)), **t)
            for m, n in ((4, 4), (6, 3), (3, 6), (0, 3), (1, 1)):
                a = matrix(s, dtype, *batch, m, n)
                out.add("geqrf", aten.geqrf, a, **t)
                if a.numel():
                    h, tau = torch.geqrf(a)
                    for left in (False, True):
                        for transpose in (False, True):
                            c = matrix(s, dtype, *batch, *((m, 2) if left else (2, m)))
                            out.add("ormqr", aten.ormqr, s.strided(h, LAYOUTS), s.strided(tau, ("packed", "sliced")), c,
                                    left, transpose, **t)
                lu, pivots, _ = torch.linalg.lu_factor_ex(a)
                for data, points in ((True, True), (True, False), (False, True)):
                    out.add("lu_unpack", aten.lu_unpack, s.strided(lu, LAYOUTS), pivots, data, points, **t)
        u = factor(s, dtype, (2, 1), 3, False)
        out.add("cholesky_solve", aten.cholesky_solve, matrix(s, dtype, 4, 3, 2), u, False, **t)
        out.add("triangular_solve", aten.triangular_solve, matrix(s, dtype, 4, 3, 2), u, False, False, False, **t)


def errors(out):
    eye, odd = torch.eye(3), torch.ones(3, 4)
    for op in ("cholesky_solve", "triangular_solve"):
        rest = (False,) if op == "cholesky_solve" else (False, False, False)
        call = getattr(aten, op)
        out.add(op, call, torch.ones(4, 2), eye, *rest, message="each A matrix is 3 by 3 but each b matrix is 4 by 2")
        out.add(op, call, torch.ones(3), eye, *rest, message="at least 2 dimensions")
        out.add(op, call, torch.ones(3, 2).double(), eye, *rest, message="to have the same dtype")
        out.add(op, call, torch.ones(3, 2), odd, *rest, message="A must be batches of square matrices")
    out.add("cholesky_inverse", aten.cholesky_inverse, odd, False, message="A must be batches of square matrices")
    out.add("cholesky_inverse", aten.cholesky_inverse, torch.zeros(2, 2), False,
            message="The diagonal element 1 is zero, the inversion could not be completed")
    out.add("geqrf", aten.geqrf, torch.ones(3), message="input must have at least 2 dimensions")
    tau = torch.ones(3)
    out.add("ormqr", aten.ormqr, torch.ones(2, 3), tau, torch.ones(2, 2), True, False,
            message="tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])")
    out.add("ormqr", aten.ormqr, eye, tau, torch.ones(4, 4), True, False, message="must be equal to input.shape[-2]")
    out.add("lu_unpack", aten.lu_unpack, eye, torch.ones(3), True, True,
            message="LU_pivots is expected to be a contiguous tensor of torch.int32 dtype")
    out.add("lu_unpack", aten.lu_unpack, eye, torch.tensor([1, 9, 3], dtype=torch.int32), True, True,
            message="must be between 1 and LU.size(-2) inclusive")


def main(path=pathlib.Path(__file__).parents[1] / "data" / "factored.cases"):
    torch.set_num_threads(1)
    s = Samples(9)
    out = CaseWriter(path)
    values(s, out)
    errors(out)
    out.close()


main()
