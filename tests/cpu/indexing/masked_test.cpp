#include "src/cpu/indexing/masked.h"

#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("masked_select: as PyTorch") { run_kernel("indexing.cases", "masked_select", cpu::masked_select); }

TEST_CASE("masked_scatter: as PyTorch") { run_kernel("indexing.cases", "masked_scatter", cpu::masked_scatter); }

TEST_CASE("masked_scatter_backward: too few places, broadcast masks") {
  run_kernel("more_gradients.cases", "masked_scatter_backward", cpu::masked_scatter_backward);
}
