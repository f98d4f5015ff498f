#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("cat: as PyTorch") { run_kernel("indexing.cases", "cat", cpu::cat); }
