#include "src/cpu/reduction/histogram.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "src/cpu/sorting/sets.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/fill.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("histc: given and own ranges, NaN, errors") { run_kernel("statistics.cases", "histc", cpu::histc); }
TEST_CASE("histogram_bin_ct: weights, density, ranges") {
  run_kernel("statistics.cases", "histogram_bin_ct", cpu::histogram_bin_ct);
}
TEST_CASE("_histogramdd_from_bin_cts: several dimensions") {
  run_kernel("statistics.cases", "_histogramdd_from_bin_cts", cpu::_histogramdd_from_bin_cts);
}

TEST_CASE("bincount: the largest integer, which no tensor has a place for") {
  Tensor x = Tensor::empty(std::vector<int64_t>{2}, DType::kInt64);
  fill(x, std::numeric_limits<int64_t>::max());
  CHECK_THROWS_WITH(cpu::bincount(x, nullptr, 0), doctest::Contains("no tensor has a place"));
}
