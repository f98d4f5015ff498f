#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_fused_rms_norm: as PyTorch") { run_kernel("quantised.cases", "_fused_rms_norm", cpu::_fused_rms_norm); }
