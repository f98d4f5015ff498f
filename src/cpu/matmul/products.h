// Matrix products with numbers of any kind. Match aten::mm, bmm, addmm, baddbmm, addmv, addbmm and matmul, torch 2.15;
// see matmul.h. alpha and beta may be complex if the elements are.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor bmm(const Tensor& self, const Tensor& mat2);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha);
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha);
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha);
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha);
void addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha);
void baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                 Scalar alpha);
Tensor mv(const Tensor& self, const Tensor& vec);
Tensor dot(const Tensor& self, const Tensor& other);
Tensor vdot(const Tensor& self, const Tensor& other);  // of the conjugate of self
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha);
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim);  // along a dimension of size 3
// Vectors, matrices and batches that broadcast, by their ranks.
Tensor matmul(const Tensor& self, const Tensor& other);

// [m, *input's] where entry k is the sum of coefficients[k, i] * input[i]; coefficients [m, n].
Tensor _compute_linear_combination(const Tensor& input, const Tensor& coefficients);

}  // namespace sconce::cpu
