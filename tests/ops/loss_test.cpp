#include "src/ops/loss.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("soft_margin_loss_backward: reductions, halves") {
  run_cases("more_gradients.cases", "soft_margin_loss_backward", [](Case& c) {
    return std::vector<Tensor>{cpu::soft_margin_loss_backward(c.tensor(0), c.tensor(1), c.tensor(2), c.integer(3))};
  });
}
