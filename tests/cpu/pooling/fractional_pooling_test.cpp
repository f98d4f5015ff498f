#include <doctest/doctest.h>

#include <array>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("fractional_max_pool2d: windows from samples") {
  run_kernel("gradients.cases", "fractional_max_pool2d", cpu::fractional_max_pool2d);
}
TEST_CASE("fractional_max_pool3d: windows from samples") {
  run_kernel("gradients.cases", "fractional_max_pool3d", cpu::fractional_max_pool3d);
}
TEST_CASE("fractional_max_pool2d_backward: sums at indices") {
  run_kernel("gradients.cases", "fractional_max_pool2d_backward", cpu::fractional_max_pool2d_backward);
}
TEST_CASE("fractional_max_pool3d_backward: sums at indices") {
  run_kernel("gradients.cases", "fractional_max_pool3d_backward", cpu::fractional_max_pool3d_backward);
}
TEST_CASE("fractional_max_pool2d_backward: gradients by their strides, indices in the order of memory") {
  run_kernel("sampling.cases", "fractional_max_pool2d_backward", cpu::fractional_max_pool2d_backward);
}
TEST_CASE("fractional_max_pool3d_backward: gradients by their strides, indices in the order of memory") {
  run_kernel("sampling.cases", "fractional_max_pool3d_backward", cpu::fractional_max_pool3d_backward);
}
TEST_CASE("fractional_max_pool2d_backward: indices whose memory ends before are read by their strides") {
  Tensor self = Tensor::empty(IntSpan(std::array<int64_t, 3>{1, 4, 4}), DType::kFloat32);
  Tensor grad = Tensor::empty(IntSpan(std::array<int64_t, 3>{1, 2, 2}), DType::kFloat32);
  for (int64_t i = 0; i < 4; ++i) grad.data_as<float>()[i] = static_cast<float>(i + 1);
  Tensor one = Tensor::empty(IntSpan(std::array<int64_t, 1>{1}), DType::kInt64);
  one.data_as<int64_t>()[0] = 5;
  const std::array<int64_t, 3> sizes{1, 2, 2}, none{0, 0, 0};
  const std::array<int64_t, 2> two{2, 2};
  const Tensor slopes = cpu::fractional_max_pool2d_backward(grad, self, two, two, one.as_strided(sizes, none, 0));
  for (int64_t i = 0; i < 16; ++i) CHECK(slopes.data_as<float>()[i] == (i == 5 ? 10 : 0));
}
