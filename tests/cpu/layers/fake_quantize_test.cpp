#include "src/cpu/layers/fake_quantize.h"

#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_fused_moving_avg_obs_fq_helper_functional: rows, symmetric grids, observers off") {
  run_kernel("more_gradients.cases", "_fused_moving_avg_obs_fq_helper_functional",
             cpu::_fused_moving_avg_obs_fq_helper_functional);
}
TEST_CASE("_fused_moving_avg_obs_fq_helper_functional: zero points halfway, from the end whose terms are smaller") {
  run_kernel("found_elements.cases", "aten::_fused_moving_avg_obs_fq_helper_functional",
             cpu::_fused_moving_avg_obs_fq_helper_functional);
}
TEST_CASE("_fused_moving_avg_obs_fq_helper: writes its observers in place") {
  run_cases("more_gradients.cases", "_fused_moving_avg_obs_fq_helper_functional", [](Case& c) {
    Tensor low = clone(c.tensor(3)), high = clone(c.tensor(4)), scale = clone(c.tensor(5)), zero = clone(c.tensor(6));
    auto [out, mask] =
        cpu::_fused_moving_avg_obs_fq_helper(c.tensor(0), c.tensor(1), c.tensor(2), low, high, scale, zero, c.real(7),
                                             c.integer(8), c.integer(9), c.integer(10), c.boolean(11), c.boolean(12));
    return std::vector<Tensor>{out, mask, low, high, scale, zero};
  });
}
