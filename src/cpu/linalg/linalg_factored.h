// Operators on factors that were computed before, through LAPACK, over batches. Match aten's operators of the same
// names (torch 2.15, CPU with LAPACK), result strides among them; float32, float64 and their complex dtypes; any
// strides.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// X of A X = self, input2 [..., n, n] the Cholesky factor of A: its upper triangle U with A = U^H U, or its lower.
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper);
// The inverse of the matrix whose Cholesky factor self is. kInvalidArgument where it is singular.
Tensor cholesky_inverse(const Tensor& self, bool upper);

// {a, tau}: R on and above the diagonal of a [..., m, n], the reflectors of Q below.
std::array<Tensor, 2> geqrf(const Tensor& self);
// Q C, C Q or their forms with Q^H: self [..., m, k] and input2 [..., k] as geqrf makes them, input3 = C.
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose);

// {P, L, U} of what linalg_lu_factor made; empty [0] for what is not asked for. pivots: int32 from 1, packed.
std::array<Tensor, 3> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots);

// {X, a copy of A}: op(A) X = self with A triangular; transpose: op(A) is A's transpose, not conjugated.
std::array<Tensor, 2> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                       bool unitriangular);

}  // namespace sconce::cpu
