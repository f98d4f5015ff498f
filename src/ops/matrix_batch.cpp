#include "src/ops/matrix_batch.h"

#include <algorithm>
#include <limits>

#include "sconce/check.h"
#include "src/ops/copy.h"

namespace sconce {

Tensor empty_matrices(const Shape& sizes, DType dtype, bool column_major) {
  const int rank = sizes.rank();
  Shape strides = sizes;
  contiguous_strides(sizes, strides.data());
  if (column_major && rank >= 2) {
    strides[rank - 1] = std::max<int64_t>(sizes[rank - 2], 1);
    strides[rank - 2] = 1;
  }
  return Tensor::empty_strided(sizes, strides, dtype);
}

Tensor no_matrix(DType dtype) {
  const int64_t zero = 0;
  return Tensor::empty(IntSpan(&zero, 1), dtype);
}

Tensor column_major_copy(const Tensor& self) {
  Tensor out = empty_matrices(Shape(self.sizes()), self.dtype());
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

int int_size(std::string_view name, int64_t size) {
  SCONCE_CHECK(size <= std::numeric_limits<int>::max(), kUnsupported, name, ": a matrix of size ", size);
  return static_cast<int>(size);
}

}  // namespace sconce
