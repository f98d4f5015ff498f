#include "src/ops/resample_backward.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {
void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("gradients.cases", op, call); }
std::optional<double> scale(Case& c, size_t i) {
  return c.args[i].none() ? std::nullopt : std::optional<double>(c.real(i));
}
}  // namespace

TEST_CASE("upsample_linear1d_backward: scales, corners, halves") {
  run("upsample_linear1d_backward", [](Case& c) {
    return Results{cpu::upsample_linear1d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                   c.boolean(3), scale(c, 4))};
  });
}
TEST_CASE("upsample_bicubic2d_backward: scales, corners, layouts") {
  run("upsample_bicubic2d_backward", [](Case& c) {
    return Results{cpu::upsample_bicubic2d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                    c.boolean(3), scale(c, 4), scale(c, 5))};
  });
}
TEST_CASE("upsample_trilinear3d_backward: scales, corners, layouts") {
  run("upsample_trilinear3d_backward", [](Case& c) {
    return Results{cpu::upsample_trilinear3d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                      c.boolean(3), scale(c, 4), scale(c, 5), scale(c, 6))};
  });
}
TEST_CASE("replication_pad1d_backward: cropping too") {
  run("replication_pad1d_backward",
      [](Case& c) { return Results{cpu::replication_pad1d_backward(c.tensor(0), c.tensor(1), c.args[2].integers())}; });
}
TEST_CASE("replication_pad2d_backward: cropping, layouts") {
  run("replication_pad2d_backward",
      [](Case& c) { return Results{cpu::replication_pad2d_backward(c.tensor(0), c.tensor(1), c.args[2].integers())}; });
}
