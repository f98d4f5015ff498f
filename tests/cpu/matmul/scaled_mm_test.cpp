#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_scaled_mm: scales of a tensor and of rows, every dtype of the result") {
  run_cases("quantised.cases", "_scaled_mm", [](Case& c) {
    return std::vector<Tensor>{cpu::_scaled_mm(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3),
                                               c.args[4].optional_tensor(), c.args[5].optional_tensor(),
                                               dtype_from_number(static_cast<int32_t>(c.integer(6))), false)};
  });
}

TEST_CASE("_scaled_mm_out: into rows or columns") {
  run_cases("quantised.cases", "_scaled_mm_out", [](Case& c) {
    const auto number = c.args[7].optional<int64_t>();
    cpu::_scaled_mm_out(c.args[0].tensor(), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4),
                        c.args[5].optional_tensor(), c.args[6].optional_tensor(),
                        number ? dtype_from_number(static_cast<int32_t>(*number)) : std::nullopt, false);
    return std::vector<Tensor>{};
  });
}
