#include <doctest/doctest.h>

#include <algorithm>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("segment_reduce: lengths and offsets, empty segments, initial values, NaN") {
  run_kernel("statistics.cases", "segment_reduce", cpu::segment_reduce);
}
TEST_CASE("_segment_reduce_backward: shared extrema, zeros in products") {
  run_kernel("statistics.cases", "_segment_reduce_backward", cpu::_segment_reduce_backward);
}

// Expected values come from torch.segment_reduce.
TEST_CASE("segment_reduce: empty data") {
  using Ints = std::vector<int64_t>;
  const Tensor data = Tensor::empty(Ints{0, 5}, DType::kFloat32);
  Tensor lengths = Tensor::empty(Ints{2}, DType::kInt64);
  std::fill_n(lengths.data_as<int64_t>(), 2, int64_t{0});
  const Tensor got = cpu::segment_reduce(data, "sum", &lengths, nullptr, nullptr, 0, false, std::nullopt);
  CHECK(std::ranges::equal(got.sizes(), Ints{2, 5}));
  CHECK(std::all_of(got.data_as<float>(), got.data_as<float>() + 10, [](float v) { return v == 0; }));
  const Tensor none = Tensor::empty(Ints{0}, DType::kInt64);
  CHECK(cpu::segment_reduce(data, "max", &none, nullptr, nullptr, 0, true, std::nullopt).size(0) == 0);
  CHECK_THROWS_WITH_AS(cpu::segment_reduce(data, "max", &none, nullptr, nullptr, 0, false, std::nullopt),
                       doctest::Contains("lengths must not be empty"), Error);
}
