#include "src/cpu/sorting/order_statistics.h"

#include <doctest/doctest.h>

#include <limits>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {
void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("statistics.cases", op, call); }
Results both(std::array<Tensor, 2> results) { return {results[0], results[1]}; }
}  // namespace

TEST_CASE("kthvalue: ranks, ties, NaN") {
  run("kthvalue", [](Case& c) { return both(cpu::kthvalue(c.tensor(0), c.integer(1), c.integer(2), c.boolean(3))); });
}
TEST_CASE("median: NaN wins, empty tensors") {
  run("median", [](Case& c) { return Results{cpu::median(c.tensor(0))}; });
}
TEST_CASE("nanmedian: NaN is left out") {
  run("nanmedian", [](Case& c) { return Results{cpu::nanmedian(c.tensor(0))}; });
}
TEST_CASE("mode: the smallest of the most frequent, NaNs in short slices") {
  run("mode", [](Case& c) { return both(cpu::mode(c.tensor(0), c.integer(1), c.boolean(2))); });
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
