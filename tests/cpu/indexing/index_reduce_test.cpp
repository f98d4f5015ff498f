#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("index_reduce: reductions, dtypes, indices out of range") {
  run_kernel("more_gradients.cases", "index_reduce", cpu::index_reduce);
}
