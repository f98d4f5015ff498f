#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu_backward: masks, causal, halves") {
  run_cases("more_gradients.cases", "_scaled_dot_product_flash_attention_for_cpu_backward", [](Case& c) {
    const auto scale = c.args[8].none() ? std::nullopt : std::optional<double>(c.real(8));
    return listed(cpu::_scaled_dot_product_flash_attention_for_cpu_backward(
        c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.tensor(5), 0, c.boolean(6),
        c.args[7].optional_tensor(), scale));
  });
}
