#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_fused_rms_norm: as PyTorch") {
  run_cases("quantised.cases", "_fused_rms_norm", [](Case& c) {
    const auto results = cpu::_fused_rms_norm(c.tensor(0), c.args[1].integers(), c.args[2].optional_tensor(),
                                              c.args[3].optional<double>());
    return std::vector<Tensor>(results.begin(), results.end());
  });
}
