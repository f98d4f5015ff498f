#include "src/cpu/pooling/grid_sampler.h"

#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {

template <class F>
void run_forward(std::string_view file, std::string_view op, F forward) {
  run_cases(file, op, [&](Case& c) {
    return Results{forward(c.tensor(0), c.tensor(1), c.integer(2), c.integer(3), c.boolean(4))};
  });
}
template <class F>
void run_backward(std::string_view file, std::string_view op, F backward) {
  run_cases(file, op, [&](Case& c) {
    std::vector<int32_t> mask;
    for (const Value& v : c.args[6].list()) mask.push_back(v.boolean());
    auto [by_input, by_grid] =
        backward(c.tensor(0), c.tensor(1), c.tensor(2), c.integer(3), c.integer(4), c.boolean(5), mask);
    return Results{by_input, by_grid};
  });
}

}  // namespace

TEST_CASE("grid_sampler_3d: modes, padding, far and endless places") {
  run_forward("gradients.cases", "grid_sampler_3d", cpu::grid_sampler_3d);
}
TEST_CASE("grid_sampler_2d_backward: modes, padding") {
  run_backward("gradients.cases", "grid_sampler_2d_backward", cpu::grid_sampler_2d_backward);
}
TEST_CASE("grid_sampler_3d_backward: modes, padding") {
  run_backward("gradients.cases", "grid_sampler_3d_backward", cpu::grid_sampler_3d_backward);
}
TEST_CASE("grid_sampler_3d: tricubic, coordinates without a number, any strides") {
  run_forward("sampling.cases", "grid_sampler_3d", cpu::grid_sampler_3d);
}
TEST_CASE("grid_sampler_2d: coordinates without a number, any strides") {
  run_forward("sampling.cases", "grid_sampler_2d", cpu::grid_sampler_2d);
}
TEST_CASE("grid_sampler_3d_backward: tricubic, coordinates without a number, any strides") {
  run_backward("sampling.cases", "grid_sampler_3d_backward", cpu::grid_sampler_3d_backward);
}
TEST_CASE("grid_sampler_2d_backward: coordinates without a number, any strides") {
  run_backward("sampling.cases", "grid_sampler_2d_backward", cpu::grid_sampler_2d_backward);
}
