#include "src/cpu/pooling/grid_sampler.h"

#include <doctest/doctest.h>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("grid_sampler_3d: modes, padding, far and endless places") {
  run_kernel("gradients.cases", "grid_sampler_3d", cpu::grid_sampler_3d);
}
TEST_CASE("grid_sampler_2d_backward: modes, padding") {
  run_kernel("gradients.cases", "grid_sampler_2d_backward", cpu::grid_sampler_2d_backward);
}
TEST_CASE("grid_sampler_3d_backward: modes, padding") {
  run_kernel("gradients.cases", "grid_sampler_3d_backward", cpu::grid_sampler_3d_backward);
}
TEST_CASE("grid_sampler_3d: tricubic, coordinates without a number, any strides") {
  run_kernel("sampling.cases", "grid_sampler_3d", cpu::grid_sampler_3d);
}
TEST_CASE("grid_sampler_2d: coordinates without a number, any strides") {
  run_kernel("sampling.cases", "grid_sampler_2d", cpu::grid_sampler_2d);
}
TEST_CASE("grid_sampler_3d_backward: tricubic, coordinates without a number, any strides") {
  run_kernel("sampling.cases", "grid_sampler_3d_backward", cpu::grid_sampler_3d_backward);
}
TEST_CASE("grid_sampler_2d_backward: coordinates without a number, any strides") {
  run_kernel("sampling.cases", "grid_sampler_2d_backward", cpu::grid_sampler_2d_backward);
}
