#include "src/tensor/matrices/matrix_batch.h"

#include <algorithm>
#include <limits>

#include "sconce/check.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"

namespace sconce {

Tensor empty_matrices(const Shape& sizes, DType dtype, bool column_major, Device device) {
  const int rank = sizes.rank();
  Shape strides = sizes;
  contiguous_strides(sizes, strides.data());
  if (column_major && rank >= 2) {
    strides[rank - 1] = std::max<int64_t>(sizes[rank - 2], 1);
    strides[rank - 2] = 1;
  }
  return Tensor::empty_strided(sizes, strides, dtype, device);
}

Tensor no_matrix(DType dtype, Device device) {
  const int64_t zero = 0;
  return Tensor::empty(IntSpan(&zero, 1), dtype, device);
}

void fill_identity(Tensor& matrices) {
  zero(matrices);
  const int64_t rank = matrices.dim();
  Shape sizes = batch_shape(matrices), strides(matrices.strides().first(static_cast<size_t>(rank - 2)));
  sizes.push_back(std::min(matrices.size(rank - 2), matrices.size(rank - 1)));
  strides.push_back(matrices.stride(rank - 2) + matrices.stride(rank - 1));
  Tensor diagonal = matrices.as_strided(sizes, strides, matrices.storage_offset());
  fill(diagonal, int64_t{1});
}

Tensor column_major_copy(const Tensor& self) {
  Tensor out = empty_matrices(Shape(self.sizes()), self.dtype(), true, self.device());
  copy(self, out);
  return out;
}

Shape batch_shape(const Tensor& self, int count) {
  return Shape(self.sizes().first(static_cast<size_t>(self.dim() - count)));
}
Shape with_matrix(Shape batch, int64_t m, int64_t n) {
  batch.push_back(m);
  batch.push_back(n);
  return batch;
}
Shape with_last(Shape batch, int64_t n) {
  batch.push_back(n);
  return batch;
}
int64_t count_of(IntSpan sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Tensor broadcast_matrices(const char* name, const Tensor& self, const Shape& batch) {
  return expand(name, self, with_matrix(batch, self.size(self.dim() - 2), self.size(self.dim() - 1)));
}

void check_matrices(std::string_view name, const Tensor& self) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, name, ": The input tensor A must have at least 2 dimensions.");
  SCONCE_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), kInvalidArgument, name,
               ": Expected a floating point or complex tensor as input. Got ", dtype_name(self.dtype()));
  SCONCE_CHECK(self.dtype() == DType::kFloat32 || self.dtype() == DType::kFloat64 ||
                   self.dtype() == DType::kComplex64 || self.dtype() == DType::kComplex128,
               kInvalidArgument, name, ": Low precision dtypes not supported. Got ", dtype_name(self.dtype()));
}

void check_square(std::string_view name, const Tensor& self) {
  check_matrices(name, self);
  const int64_t m = self.size(self.dim() - 2), n = self.size(self.dim() - 1);
  SCONCE_CHECK(m == n, kInvalidArgument, name, ": A must be batches of square matrices, but they are ", m, " by ", n,
               " matrices");
}

void check_matrix_rank(const char* name, const char* which, const Tensor& tensor) {
  SCONCE_CHECK(tensor.dim() >= 2, kInvalidArgument, name, ": ", which, " should have at least 2 dimensions, but has ",
               tensor.dim(), " dimensions instead");
}

void check_factored(const char* name, const Tensor& LU_data, const Tensor* LU_pivots) {
  check_matrix_rank(name, "LU_data", LU_data);
  check_matrices(name, LU_data);
  if (!LU_pivots) return;
  const int64_t k = std::min(LU_data.size(LU_data.dim() - 2), LU_data.size(LU_data.dim() - 1));
  SCONCE_CHECK(LU_pivots->dtype() == DType::kInt32, kInvalidArgument, name,
               ": LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is "
               "intended to be used with the output produced by torch.linalg.lu_factor");
  SCONCE_CHECK(
      LU_pivots->dim() == LU_data.dim() - 1 && count_of(LU_pivots->sizes()) == count_of(batch_shape(LU_data)) * k,
      kInvalidArgument, name, ": LU_pivots ", describe(*LU_pivots), " do not go with LU_data ", describe(LU_data));
}

void check_solvable(const char* name, const Tensor& b, const Tensor& A) {
  check_matrix_rank(name, "b", b);
  check_matrix_rank(name, "A", A);
  SCONCE_CHECK(b.dtype() == A.dtype(), kInvalidArgument, name,
               ": expected b and A to have the same dtype, but found b of ", dtype_name(b.dtype()), " and A of ",
               dtype_name(A.dtype()), " instead");
  check_square(name, A);
  const int64_t n = A.size(A.dim() - 1);
  SCONCE_CHECK(b.size(b.dim() - 2) == n, kInvalidArgument, name, ": Incompatible matrix sizes: each A matrix is ", n,
               " by ", n, " but each b matrix is ", b.size(b.dim() - 2), " by ", b.size(b.dim() - 1));
}

void check_same_dtype(const char* name, const Tensor& A, const Tensor& B) {
  SCONCE_CHECK(A.dtype() == B.dtype(), kInvalidArgument, name,
               ": Expected A and B to have the same dtype, but found A of type ", dtype_name(A.dtype()),
               " and B of type ", dtype_name(B.dtype()), " instead");
}

void check_equation(const char* name, const Tensor& A, const Tensor& B, bool left) {
  check_same_dtype(name, A, B);
  SCONCE_CHECK(B.dim() >= 2, kInvalidArgument, name, ": The input tensor B must have at least 2 dimensions.");
  const int64_t n = A.size(A.dim() - 1), rows = B.size(B.dim() - 2), columns = B.size(B.dim() - 1);
  SCONCE_CHECK(left ? n == rows : n == columns, kInvalidArgument, name,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
               A.size(A.dim() - 2), "x", n, " and ", rows, "x", columns, ")");
}

bool is_vector_for(const Tensor& A, const Tensor& B) {
  if (B.dim() == 1) return true;
  const IntSpan expected = A.sizes().first(static_cast<size_t>(A.dim() - 1));
  return A.dim() - 1 == B.dim() && std::equal(expected.begin(), expected.end(), B.sizes().begin());
}

void check_pivots(const char* name, const Tensor& LU, const Tensor& pivots) {
  SCONCE_CHECK(pivots.dtype() == DType::kInt32 && pivots.dim() == LU.dim() - 1 &&
                   std::equal(pivots.sizes().begin(), pivots.sizes().end(), LU.sizes().begin()),
               kInvalidArgument, name, ": pivots of a factorisation of ", describe(LU),
               " should be int32 without its last dimension, got ", describe(pivots));
}

void check_qr_mode(std::string_view mode) {
  SCONCE_CHECK(mode == "reduced" || mode == "complete" || mode == "r", kInvalidArgument,
               "linalg.qr: qr received unrecognized mode '", mode,
               "' but expected one of 'reduced' (default), 'r', or 'complete'");
}

bool reads_lower(std::string_view UPLO) {
  const bool lower = UPLO == "L" || UPLO == "l";
  SCONCE_CHECK(lower || UPLO == "U" || UPLO == "u", kInvalidArgument,
               "linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got ", UPLO);
  return lower;
}

void check_polar(const Tensor& A) {
  check_matrices("linalg.polar", A);
  const int64_t rows = A.size(A.dim() - 2), columns = A.size(A.dim() - 1);
  SCONCE_CHECK(rows >= columns, kInvalidArgument,
               "linalg.polar: input must have at least as many rows as columns, but got ", rows, " by ", columns,
               " matrices");
}

void check_householder(const char* name, const Tensor& input, const Tensor& tau) {
  SCONCE_CHECK(input.dim() >= 2, kInvalidArgument, name, ": input must have at least 2 dimensions.");
  const int64_t m = input.size(input.dim() - 2), n = input.size(input.dim() - 1);
  SCONCE_CHECK(m >= n, kInvalidArgument, name, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  SCONCE_CHECK(tau.dim() == input.dim() - 1 && tau.dtype() == input.dtype() && n >= tau.size(tau.dim() - 1),
               kInvalidArgument, name, ": tau ", describe(tau), " does not go with input ", describe(input));
  for (int64_t d = 0; d + 1 < tau.dim(); ++d)
    SCONCE_CHECK(tau.size(d) == input.size(d), kInvalidArgument, name, ": tau ", describe(tau),
                 " does not go with input ", describe(input));
}

void check_reflectors(const char* name, const Tensor& self, const Tensor& tau, const Tensor& other, bool left) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, name, ": input must have at least 2 dimensions.");
  SCONCE_CHECK(other.dim() >= 2, kInvalidArgument, name, ": other must have at least 2 dimensions.");
  check_matrices(name, self);
  const int64_t order = other.size(other.dim() - (left ? 2 : 1));
  SCONCE_CHECK(self.dim() == tau.dim() + 1 && tau.dtype() == self.dtype(), kInvalidArgument, name, ": tau ",
               describe(tau), " does not go with input ", describe(self));
  const int64_t reflectors = tau.size(tau.dim() - 1);
  SCONCE_CHECK(order == self.size(self.dim() - 2), kInvalidArgument, name, ": other.shape[", left ? -2 : -1,
               "] must be equal to input.shape[-2]");
  SCONCE_CHECK(reflectors == std::min(order, self.size(self.dim() - 1)), kInvalidArgument, name,
               ": tau.shape[-1] must be equal to min(other.shape[", left ? -2 : -1, "], input.shape[-1])");
  SCONCE_CHECK(other.dim() == self.dim() && other.dtype() == self.dtype(), kInvalidArgument, name, ": other ",
               describe(other), " does not go with input ", describe(self));
  for (int64_t d = 0; d + 2 < self.dim(); ++d)
    SCONCE_CHECK(tau.size(d) == self.size(d) && other.size(d) == self.size(d), kInvalidArgument, name,
                 ": batch dimensions of tau ", describe(tau), " and other ", describe(other),
                 " should be equal to those of input ", describe(self));
}

int int_size(std::string_view name, int64_t size) {
  SCONCE_CHECK(size <= std::numeric_limits<int>::max(), kUnsupported, name, ": a matrix of size ", size);
  return static_cast<int>(size);
}

}  // namespace sconce
