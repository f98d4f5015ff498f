#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("index_reduce: reductions, dtypes, indices out of range") {
  run_cases("more_gradients.cases", "index_reduce", [](Case& c) {
    return std::vector<Tensor>{
        cpu::index_reduce(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3), c.text(4), c.boolean(5))};
  });
}
