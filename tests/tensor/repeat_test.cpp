#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("repeat_interleave_Tensor: as PyTorch") {
  run_kernel("indexing.cases", "repeat_interleave_Tensor", cpu::repeat_interleave_Tensor);
}
