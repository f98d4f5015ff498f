#include "src/cpu/reduction/histogram.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "src/cpu/sorting/sets.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/fill.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {

void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("statistics.cases", op, call); }

std::optional<std::vector<double>> reals(const Value& value) {
  if (value.none()) return std::nullopt;
  std::vector<double> list;
  for (const Value& v : value.list()) list.push_back(v.real());
  return list;
}
cpu::OptReals view(const std::optional<std::vector<double>>& list) {
  return list ? cpu::OptReals(std::span<const double>(*list)) : std::nullopt;
}

}  // namespace

TEST_CASE("histc: given and own ranges, NaN, errors") {
  run("histc", [](Case& c) { return Results{cpu::histc(c.tensor(0), c.integer(1), c.real(2), c.real(3))}; });
}
TEST_CASE("histogram_bin_ct: weights, density, ranges") {
  run("histogram_bin_ct", [](Case& c) {
    const auto range = reals(c.args[2]);
    auto [hist, edges] =
        cpu::histogram_bin_ct(c.tensor(0), c.integer(1), view(range), c.args[3].optional_tensor(), c.boolean(4));
    return Results{hist, edges};
  });
}
TEST_CASE("_histogramdd_from_bin_cts: several dimensions") {
  run("_histogramdd_from_bin_cts", [](Case& c) {
    const auto range = reals(c.args[2]);
    return Results{cpu::_histogramdd_from_bin_cts(c.tensor(0), c.args[1].integers(), view(range),
                                                  c.args[3].optional_tensor(), c.boolean(4))};
  });
}

TEST_CASE("bincount: the largest integer, which no tensor has a place for") {
  Tensor x = Tensor::empty(std::vector<int64_t>{2}, DType::kInt64);
  fill(x, std::numeric_limits<int64_t>::max());
  CHECK_THROWS_WITH(cpu::bincount(x, nullptr, 0), doctest::Contains("no tensor has a place"));
}
