#include "src/ops/dimensions.h"

#include <doctest/doctest.h>

#include <vector>

using namespace sconce;
using Ints = std::vector<int64_t>;

namespace {
Ints strides(const Tensor& tensor) { return {tensor.strides().begin(), tensor.strides().end()}; }
}  // namespace

// Strides are those of torch.Tensor.expand.
TEST_CASE("expand: a new dimension of size 1 keeps the tensor contiguous") {
  const Tensor row = Tensor::empty(Ints{5}, DType::kFloat32), matrix = Tensor::empty(Ints{2, 3}, DType::kFloat32);
  CHECK(strides(cpu::expand(row, Ints{1, 1, 5})) == Ints{5, 5, 1});
  CHECK(strides(cpu::expand(row, Ints{1, 4, 5})) == Ints{0, 0, 1});
  CHECK(strides(cpu::expand(row, Ints{4, 1, -1})) == Ints{0, 5, 1});
  CHECK(strides(cpu::expand(matrix.as_strided(Ints{3, 2}, Ints{1, 3}, 0), Ints{1, 3, 2})) == Ints{3, 1, 3});
  CHECK(strides(cpu::expand(Tensor::empty(Ints{}, DType::kFloat32), Ints{1, 1})) == Ints{0, 0});
}
