#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_trilinear: summed dimensions, dtypes") {
  run_cases("more_gradients.cases", "_trilinear", [](Case& c) {
    return std::vector<Tensor>{cpu::_trilinear(c.tensor(0), c.tensor(1), c.tensor(2), c.args[3].integers(),
                                               c.args[4].integers(), c.args[5].integers(), c.args[6].integers(),
                                               c.integer(7))};
  });
}
