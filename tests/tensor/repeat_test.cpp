#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("repeat_interleave_Tensor: as PyTorch") {
  run_cases("indexing.cases", "repeat_interleave_Tensor", [](Case& c) {
    return std::vector{cpu::repeat_interleave_Tensor(c.tensor(0), c.args[1].optional<int64_t>())};
  });
}
