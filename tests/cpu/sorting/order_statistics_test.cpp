#include "src/cpu/sorting/order_statistics.h"

#include <doctest/doctest.h>

#include <limits>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("kthvalue: ranks, ties, NaN") { run_kernel("statistics.cases", "kthvalue", cpu::kthvalue); }
TEST_CASE("median: NaN wins, empty tensors") { run_kernel("statistics.cases", "median", cpu::median); }
TEST_CASE("nanmedian: NaN is left out") { run_kernel("statistics.cases", "nanmedian", cpu::nanmedian); }
TEST_CASE("mode: the smallest of the most frequent, NaNs in short slices") {
  run_kernel("statistics.cases", "mode", cpu::mode);
}
TEST_CASE("mode: NaNs in long slices are greatest") {
  std::vector<float> values(40, std::numeric_limits<float>::quiet_NaN());
  values[7] = values[31] = 2;
  const int64_t size[] = {40}, stride[] = {1};
  const Tensor t = Tensor::from_blob(values.data(), size, stride, DType::kFloat32);
  const auto [value, position] = cpu::mode(t, 0, false);
  CHECK(*value.data_as<float>() == 2);
  CHECK((*position.data_as<int64_t>() == 7 || *position.data_as<int64_t>() == 31));
}
