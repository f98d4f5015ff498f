#include "src/ops/convolution_backward.h"

#include <doctest/doctest.h>

#include "src/ops/copy.h"
#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("convolution_backward: one to three dimensions, groups, transposed, masks") {
  run_cases("more_gradients.cases", "convolution_backward", [](Case& c) {
    std::vector<int32_t> mask;
    for (const Value& v : c.args[10].list()) mask.push_back(v.boolean());
    const std::vector<int64_t> bias = c.args[3].integers();
    const auto gradients = cpu::convolution_backward(c.tensor(0), c.tensor(1), c.tensor(2), IntSpan(bias),
                                                     c.args[4].integers(), c.args[5].integers(), c.args[6].integers(),
                                                     c.boolean(7), c.args[8].integers(), c.integer(9), mask);
    std::vector<Tensor> results;
    for (size_t i = 0; i < 3; ++i) {
      CHECK(gradients[i].defined() == (mask[i] != 0));
      if (mask[i]) results.push_back(clone_contiguous(gradients[i]));
    }
    return results;
  });
}
