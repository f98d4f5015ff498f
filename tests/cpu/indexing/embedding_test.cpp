
#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

namespace {
template <class F>
void run(std::string_view op, F bag) {
  run_cases("embedding.cases", op, [&](Case& c) {
    return listed(bag(c.tensor(0), c.tensor(1), c.tensor(2), false, c.integer(3), false, c.args[4].optional_tensor(),
                      c.boolean(5), c.integer(6)));
  });
}
}  // namespace

TEST_CASE("_embedding_bag: modes, dtypes, padding, weights, offsets") { run("_embedding_bag", cpu::_embedding_bag); }
TEST_CASE("_embedding_bag_forward_only: sizes of what a sum leaves out") {
  run("_embedding_bag_forward_only", cpu::_embedding_bag_forward_only);
}
