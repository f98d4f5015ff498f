#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {
void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("statistics.cases", op, call); }
}  // namespace

TEST_CASE("_cdist_forward: norms, batches, the way over a product") {
  run("_cdist_forward", [](Case& c) {
    return Results{cpu::_cdist_forward(c.tensor(0), c.tensor(1), c.real(2), c.args[3].optional<int64_t>())};
  });
}
TEST_CASE("_cdist_backward: norms, batches") {
  run("_cdist_backward", [](Case& c) {
    return Results{cpu::_cdist_backward(c.tensor(0), c.tensor(1), c.tensor(2), c.real(3), c.tensor(4))};
  });
}
TEST_CASE("_pdist_forward: norms") {
  run("_pdist_forward", [](Case& c) { return Results{cpu::_pdist_forward(c.tensor(0), c.real(1))}; });
}
TEST_CASE("_pdist_backward: norms") {
  run("_pdist_backward",
      [](Case& c) { return Results{cpu::_pdist_backward(c.tensor(0), c.tensor(1), c.real(2), c.tensor(3))}; });
}
