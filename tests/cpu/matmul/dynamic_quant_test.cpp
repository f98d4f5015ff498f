#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_dyn_quant_pack_4bit_weight: as PyTorch") {
  run_kernel("quantised.cases", "_dyn_quant_pack_4bit_weight", cpu::_dyn_quant_pack_4bit_weight);
}

TEST_CASE("_dyn_quant_matmul_4bit: as PyTorch") {
  run_kernel("quantised.cases", "_dyn_quant_matmul_4bit", cpu::_dyn_quant_matmul_4bit);
}
