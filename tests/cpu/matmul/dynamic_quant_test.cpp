#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_dyn_quant_pack_4bit_weight: as PyTorch") {
  run_cases("quantised.cases", "_dyn_quant_pack_4bit_weight", [](Case& c) {
    return std::vector<Tensor>{cpu::_dyn_quant_pack_4bit_weight(c.tensor(0), c.tensor(1), c.args[2].optional_tensor(),
                                                                c.integer(3), c.integer(4), c.integer(5))};
  });
}

TEST_CASE("_dyn_quant_matmul_4bit: as PyTorch") {
  run_cases("quantised.cases", "_dyn_quant_matmul_4bit", [](Case& c) {
    return std::vector<Tensor>{
        cpu::_dyn_quant_matmul_4bit(c.tensor(0), c.tensor(1), c.integer(2), c.integer(3), c.integer(4))};
  });
}
