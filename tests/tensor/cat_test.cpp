#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("cat: as PyTorch") {
  run_cases("indexing.cases", "cat",
            [](Case& c) { return std::vector{cpu::cat(ListArgument(c.args[0].list()).tensors(), c.integer(1))}; });
}
