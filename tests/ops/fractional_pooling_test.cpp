#include "src/ops/fractional_pooling.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {

template <class F>
void run_forward(std::string_view op, F pool) {
  run_cases("gradients.cases", op, [&](Case& c) {
    auto [out, indices] = pool(c.tensor(0), c.args[1].integers(), c.args[2].integers(), c.tensor(3));
    return Results{out, indices};
  });
}
template <class F>
void run_backward(std::string_view op, F backward) {
  run_cases("gradients.cases", op, [&](Case& c) {
    return Results{backward(c.tensor(0), c.tensor(1), c.args[2].integers(), c.args[3].integers(), c.tensor(4))};
  });
}

}  // namespace

TEST_CASE("fractional_max_pool2d: windows from samples") {
  run_forward("fractional_max_pool2d", cpu::fractional_max_pool2d);
}
TEST_CASE("fractional_max_pool3d: windows from samples") {
  run_forward("fractional_max_pool3d", cpu::fractional_max_pool3d);
}
TEST_CASE("fractional_max_pool2d_backward: sums at indices") {
  run_backward("fractional_max_pool2d_backward", cpu::fractional_max_pool2d_backward);
}
TEST_CASE("fractional_max_pool3d_backward: sums at indices") {
  run_backward("fractional_max_pool3d_backward", cpu::fractional_max_pool3d_backward);
}
