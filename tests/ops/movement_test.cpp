#include "src/ops/movement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/ops/fill.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

// Strides and values are PyTorch's.
TEST_CASE("slice_scatter, select_scatter, diagonal_scatter: an expanded tensor") {
  Tensor row = Tensor::empty(Ints{3}, DType::kFloat32);
  fill(row, 1.0);
  const Tensor expanded = row.as_strided(Ints{2, 3}, Ints{0, 1}, 0);
  Tensor column = Tensor::empty(Ints{2, 1}, DType::kFloat32), two = Tensor::empty(Ints{2}, DType::kFloat32);
  zero(column);
  zero(two);
  const auto check = [](const Tensor& got, const std::vector<float>& expected) {
    CHECK(std::ranges::equal(got.strides(), Ints{3, 1}));
    CHECK(std::equal(expected.begin(), expected.end(), got.data_as<float>()));
  };
  check(cpu::slice_scatter(expanded, column, 1, 0, 1, 1), {0, 1, 1, 0, 1, 1});
  check(cpu::select_scatter(expanded, two, 1, 0), {0, 1, 1, 0, 1, 1});
  check(cpu::diagonal_scatter(expanded, two, 0, 0, 1), {0, 1, 1, 1, 0, 1});
}
