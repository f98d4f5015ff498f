#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_trilinear: summed dimensions, dtypes") {
  run_kernel("more_gradients.cases", "_trilinear", cpu::_trilinear);
}
