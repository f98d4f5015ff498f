#include "src/cpu/movement/movement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/movement/rearrangements.h"
#include "src/cpu/random/ranges.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

// Expected strides and values come from PyTorch.
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

TEST_CASE("index_add: the factor is of self's dtype, and integers keep all digits") {
  const auto added = [](DType dtype, int64_t start, int64_t source, double alpha) {
    Tensor self = Tensor::empty(Ints{1}, dtype), from = Tensor::empty(Ints{1}, dtype),
           index = Tensor::empty(Ints{1}, DType::kInt64);
    fill(self, start);
    fill(from, source);
    zero(index);
    return *to_dtype(cpu::index_add(self, 0, index, from, Scalar(alpha)), DType::kInt64).data_as<int64_t>();
  };
  CHECK(added(DType::kInt64, int64_t{1} << 60, 7, 1.0) == (int64_t{1} << 60) + 7);
  CHECK(added(DType::kInt64, (int64_t{1} << 60) + 1, (int64_t{1} << 58) + 1, 2.0) == 3 * (int64_t{1} << 59) + 3);
  CHECK(added(DType::kInt32, 10, 7, 1.5) == 17);
  CHECK(added(DType::kUInt8, 10, 7, 0.5) == 10);
  CHECK_THROWS_WITH(added(DType::kUInt8, 10, 7, -3.0), doctest::Contains("overflow"));
}

TEST_CASE("index_add, index_fill: into nothing no index is looked at") {
  const Tensor none = Tensor::empty(Ints{3, 0}, DType::kFloat32), source = Tensor::empty(Ints{3, 2}, DType::kFloat32);
  Tensor index = Tensor::empty(Ints{2}, DType::kInt64);
  zero(index);
  CHECK(std::ranges::equal(cpu::index_add(none, 1, index, source, Scalar(int64_t{1})).sizes(), Ints{3, 0}));
  CHECK(std::ranges::equal(cpu::index_fill(none, 1, index, Scalar(int64_t{1})).sizes(), Ints{3, 0}));
}

TEST_CASE("index_add: long sums of half types") {
  Tensor self = Tensor::empty(Ints{1, 2}, DType::kBFloat16), source = Tensor::empty(Ints{1537, 2}, DType::kBFloat16);
  Tensor index = Tensor::empty(Ints{1537}, DType::kInt64);
  zero(self);
  fill(source, 3.0);
  zero(index);
  const Tensor sums = to_dtype(cpu::index_add(self, 0, index, source, Scalar(int64_t{1})), DType::kFloat32);
  CHECK(sums.data_as<float>()[0] == 4608.0f);  // 4611 as bfloat16
  CHECK(sums.data_as<float>()[1] == 4608.0f);
}

TEST_CASE("isin: what is compared with what depends on the size of the set, as in PyTorch") {
  Tensor element = Tensor::empty(Ints{}, DType::kUInt8), set = Tensor::empty(Ints{9}, DType::kInt8),
         larger = Tensor::empty(Ints{10}, DType::kInt8);
  fill(element, int64_t{218});
  fill(set, int64_t{-38});
  fill(larger, int64_t{-38});
  CHECK(*cpu::isin(element, set, false, false).data_as<bool>());
  CHECK_FALSE(*cpu::isin(element, larger, false, false).data_as<bool>());
}

TEST_CASE("index_add: an index of another dtype is refused before it is read") {
  Tensor self = Tensor::empty(Ints{3}, DType::kFloat32);
  zero(self);
  for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kBool, DType::kFloat32}) {
    Tensor index = Tensor::empty(Ints{3}, dtype);
    zero(index);
    CHECK_THROWS_WITH(cpu::index_add(self, 0, index, self, Scalar(int64_t{1})),
                      doctest::Contains("Expected dtype int32"));
  }
}

TEST_CASE("index_copy: an index from the end is refused") {
  Tensor self = Tensor::empty(Ints{3}, DType::kFloat32), index = Tensor::empty(Ints{1}, DType::kInt64);
  zero(self);
  fill(index, int64_t{-1});
  const Tensor source = Tensor::empty(Ints{1}, DType::kFloat32);
  CHECK_THROWS_WITH(cpu::index_copy(self, 0, index, source), doctest::Contains("index -1"));
}

TEST_CASE("roll: a channels-last tensor stays one, where both of its parts have elements") {
  Tensor x = Tensor::empty_strided(Ints{1, 5, 1, 3, 2}, Ints{30, 1, 30, 10, 5}, DType::kFloat32);
  zero(x);
  const Ints one{1}, none{0}, both{1, 2}, dims{3, 4};
  CHECK(std::ranges::equal(cpu::roll(x, one, one).strides(), Ints{30, 1, 30, 10, 5}));
  CHECK(std::ranges::equal(cpu::roll(x, none, none).strides(), Ints{30, 6, 6, 2, 1}));
  CHECK(std::ranges::equal(cpu::roll(x, both, dims).strides(), Ints{30, 6, 6, 2, 1}));
}

TEST_CASE("to: a tensor whose strides suggest the format is in it") {
  const Tensor x = Tensor::empty_strided(Ints{2, 3, 4}, Ints{1, 2, 6}, DType::kFloat32);
  constexpr int32_t kContiguousFormat = 0;
  CHECK(cpu::to(x, DType::kFloat32, {}, {}, {}, false, false, kContiguousFormat).data() == x.data());
}

TEST_CASE("range: half types are counted in float") {
  const auto count = [](double start, double end, double step, DType dtype) {
    return cpu::range(Scalar(start), Scalar(end), Scalar(step), dtype, {}, {}, {}).numel();
  };
  CHECK(count(0, 38.1, 0.3, DType::kBFloat16) == 127);
  CHECK(count(0, 38.1, 0.3, DType::kFloat64) == 128);
  CHECK(count(-3, -5.1, -0.7, DType::kFloat16) == 4);
  CHECK(count(7, 10.2, 0.1, DType::kBFloat16) == 33);
}

// Expected strides come from PyTorch.
TEST_CASE("stack: as channels-last as what it puts together") {
  const Tensor x = Tensor::empty_strided(Ints{2, 3, 4, 5}, Ints{60, 1, 15, 3}, DType::kFloat32);
  const Tensor y = Tensor::empty_strided(Ints{3, 62, 21}, Ints{1, 63, 3}, DType::kFloat32);
  const Tensor *const two[] = {&x, &x}, *const one[] = {&y};
  CHECK(std::ranges::equal(cpu::stack(TensorList(two, 2), 0).strides(), Ints{120, 60, 1, 15, 3}));
  CHECK(std::ranges::equal(cpu::stack(TensorList(two, 2), 2).strides(), Ints{120, 1, 60, 15, 3}));
  CHECK(std::ranges::equal(cpu::stack(TensorList(one, 1), -2).strides(), Ints{1302, 21, 21, 1}));
}
