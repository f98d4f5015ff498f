#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("_cdist_forward: norms, batches, the way over a product") {
  run_kernel("statistics.cases", "_cdist_forward", cpu::_cdist_forward);
}
TEST_CASE("_cdist_backward: norms, batches") {
  run_kernel("statistics.cases", "_cdist_backward", cpu::_cdist_backward);
}
TEST_CASE("_pdist_forward: norms") { run_kernel("statistics.cases", "_pdist_forward", cpu::_pdist_forward); }
TEST_CASE("_pdist_backward: norms") { run_kernel("statistics.cases", "_pdist_backward", cpu::_pdist_backward); }
