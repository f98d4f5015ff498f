#include "src/ops/segment_reduce.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {
std::optional<double> real(const Value& value) {
  return value.none() ? std::nullopt : std::optional<double>(value.real());
}
}  // namespace

TEST_CASE("segment_reduce: lengths and offsets, empty segments, initial values, NaN") {
  run_cases("statistics.cases", "segment_reduce", [](Case& c) {
    return Results{cpu::segment_reduce(c.tensor(0), c.text(1), c.args[2].optional_tensor(), c.args[3].optional_tensor(),
                                       c.args[4].optional_tensor(), c.integer(5), c.boolean(6), real(c.args[7]))};
  });
}
TEST_CASE("_segment_reduce_backward: shared extrema, zeros in products") {
  run_cases("statistics.cases", "_segment_reduce_backward", [](Case& c) {
    return Results{cpu::_segment_reduce_backward(c.tensor(0), c.tensor(1), c.tensor(2), c.text(3),
                                                 c.args[4].optional_tensor(), c.args[5].optional_tensor(), c.integer(6),
                                                 real(c.args[7]))};
  });
}
