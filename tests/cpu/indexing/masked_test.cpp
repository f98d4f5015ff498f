#include "src/cpu/indexing/masked.h"

#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("masked_select: as PyTorch") {
  run_cases("indexing.cases", "masked_select",
            [](Case& c) { return std::vector{cpu::masked_select(c.tensor(0), c.tensor(1))}; });
}

TEST_CASE("masked_scatter: as PyTorch") {
  run_cases("indexing.cases", "masked_scatter",
            [](Case& c) { return std::vector{cpu::masked_scatter(c.tensor(0), c.tensor(1), c.tensor(2))}; });
}

TEST_CASE("masked_scatter_backward: too few places, broadcast masks") {
  run_cases("more_gradients.cases", "masked_scatter_backward", [](Case& c) {
    return std::vector<Tensor>{cpu::masked_scatter_backward(c.tensor(0), c.tensor(1), c.args[2].integers())};
  });
}
