// Shared code of linear algebra operators: batches of column-major matrices, as LAPACK and device libraries take them,
// and checks of arguments.
#pragma once

#include <string_view>

#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// [..., m, n] uninitialised; the matrices are consecutive, each column-major or row-major. The strides are ATen's
// (batched_matrix_contiguous_strides); with fewer than two dimensions they are plain.
Tensor empty_matrices(const Shape& sizes, DType dtype, bool column_major = true, Device device = {});
// [0]: a result that was not requested.
Tensor no_matrix(DType dtype, Device device = {});
// Makes each matrix of [..., m, n] the identity, or the part of it that fits.
void fill_identity(Tensor& matrices);
// A column-major copy, on the device of self.
Tensor column_major_copy(const Tensor& self);
// Sizes without the last `count` dimensions, followed by the given ones.
Shape batch_shape(const Tensor& self, int count = 2);
Shape with_matrix(Shape batch, int64_t m, int64_t n);
Shape with_last(Shape batch, int64_t n);
int64_t count_of(IntSpan sizes);
// A view of self's matrices for every element of the batch; kInvalidArgument "NAME: ..." if they do not broadcast.
Tensor broadcast_matrices(const char* name, const Tensor& self, const Shape& batch);

// kInvalidArgument "NAME: ...": fewer than two dimensions; an integer or low-precision dtype; not square.
void check_matrices(std::string_view name, const Tensor& self);
void check_square(std::string_view name, const Tensor& self);
// "NAME: WHICH should have at least 2 dimensions, ...".
void check_matrix_rank(const char* name, const char* which, const Tensor& tensor);
// The arguments of lu_unpack; pivots if requested.
void check_factored(const char* name, const Tensor& LU_data, const Tensor* LU_pivots);
// ATen's linearSolveCheckInputs: A [..., n, n], b [..., n, k] of one dtype.
void check_solvable(const char* name, const Tensor& b, const Tensor& A);
void check_same_dtype(const char* name, const Tensor& A, const Tensor& B);
// A X = B, or X A = B if not left.
void check_equation(const char* name, const Tensor& A, const Tensor& B, bool left);
// Whether B is a vector for A [..., n, n], or a batch of vectors, rather than a matrix.
bool is_vector_for(const Tensor& A, const Tensor& B);
// int32 [..., n] for LU [..., n, n].
void check_pivots(const char* name, const Tensor& LU, const Tensor& pivots);
void check_qr_mode(std::string_view mode);
// eigh's argument: whether the lower triangle is read.
bool reads_lower(std::string_view UPLO);
void check_polar(const Tensor& A);
// The arguments of householder_product.
void check_householder(const char* name, const Tensor& input, const Tensor& tau);
// The arguments of ormqr.
void check_reflectors(const char* name, const Tensor& self, const Tensor& tau, const Tensor& other, bool left);
int int_size(std::string_view name, int64_t size);  // LAPACK's integers; kUnsupported above 2^31

template <class T>
T conjugate(T value) {
  if constexpr (kIsComplex<T>)
    return std::conj(value);
  else
    return value;
}

}  // namespace sconce
