#include "src/tensor/dimensions.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/float_types.h"

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

TEST_CASE("conj: the strides of its argument") {
  const Ints sizes{2, 3}, steps{0, 2};
  Tensor wide = Tensor::empty(Ints{5}, DType::kComplex64);
  for (int i = 0; i < 5; ++i) wide.data_as<ComplexFloat>()[i] = {static_cast<float>(i), 1};
  const Tensor got = cpu::conj(wide.as_strided(sizes, steps, 0));
  CHECK(strides(got) == steps);
  for (int i = 0; i < 3; ++i) CHECK(got.data_as<ComplexFloat>()[2 * i] == ComplexFloat(static_cast<float>(2 * i), -1));
}
