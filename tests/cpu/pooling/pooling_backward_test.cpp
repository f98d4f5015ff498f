#include <doctest/doctest.h>

#include <algorithm>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("max_pool2d_with_indices_backward: layouts, halves, windows that share elements") {
  run_kernel("gradients.cases", "max_pool2d_with_indices_backward", cpu::max_pool2d_with_indices_backward);
}
TEST_CASE("max_pool3d_with_indices_backward: layouts, halves, windows that share elements") {
  run_kernel("gradients.cases", "max_pool3d_with_indices_backward", cpu::max_pool3d_with_indices_backward);
}
TEST_CASE("max_pool3d_with_indices_backward: of one image, laid out like its gradient") {
  run_kernel("found_elements.cases", "aten::max_pool3d_with_indices_backward", cpu::max_pool3d_with_indices_backward);
}
TEST_CASE("avg_pool2d_backward: padding, ceil mode, divisors") {
  run_kernel("gradients.cases", "avg_pool2d_backward", cpu::avg_pool2d_backward);
}
TEST_CASE("avg_pool3d_backward: padding, ceil mode, divisors") {
  run_kernel("gradients.cases", "avg_pool3d_backward", cpu::avg_pool3d_backward);
}
TEST_CASE("_adaptive_avg_pool2d_backward: uneven windows") {
  run_kernel("gradients.cases", "_adaptive_avg_pool2d_backward", cpu::_adaptive_avg_pool2d_backward);
}
TEST_CASE("_adaptive_avg_pool3d_backward: uneven windows") {
  run_kernel("gradients.cases", "_adaptive_avg_pool3d_backward", cpu::_adaptive_avg_pool3d_backward);
}
TEST_CASE("adaptive_max_pool2d_backward: uneven windows") {
  run_kernel("gradients.cases", "adaptive_max_pool2d_backward", cpu::adaptive_max_pool2d_backward);
}
TEST_CASE("adaptive_max_pool3d_backward: uneven windows") {
  run_kernel("gradients.cases", "adaptive_max_pool3d_backward", cpu::adaptive_max_pool3d_backward);
}
TEST_CASE("max_unpool2d: layouts, indices outside") {
  run_kernel("gradients.cases", "max_unpool2d", cpu::max_unpool2d);
}
TEST_CASE("max_unpool3d: layouts, indices outside") {
  run_kernel("gradients.cases", "max_unpool3d", cpu::max_unpool3d);
}

// PyTorch lets the first dimension, batch or channels, be empty.
TEST_CASE("adaptive_max_pool2d_backward, _adaptive_avg_pool2d_backward: which dimensions may be empty") {
  using Ints = std::vector<int64_t>;
  const auto floats = [](const Ints& sizes) { return Tensor::empty(sizes, DType::kFloat32); };
  const Tensor none = cpu::adaptive_max_pool2d_backward(floats({0, 2, 2}), floats({0, 4, 4}),
                                                        Tensor::empty(Ints{0, 2, 2}, DType::kInt64));
  CHECK(std::ranges::equal(none.sizes(), Ints{0, 4, 4}));
  CHECK(cpu::_adaptive_avg_pool2d_backward(floats({0, 2, 2}), floats({0, 4, 4})).numel() == 0);
  CHECK_THROWS_WITH_AS(cpu::_adaptive_avg_pool2d_backward(floats({2, 0, 2, 2}), floats({2, 0, 4, 4})),
                       doctest::Contains("non-zero size for non-batch dimensions"), Error);
}
