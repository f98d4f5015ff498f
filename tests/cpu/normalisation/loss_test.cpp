#include "src/cpu/normalisation/loss.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("soft_margin_loss_backward: reductions, halves") {
  run_kernel("more_gradients.cases", "soft_margin_loss_backward", cpu::soft_margin_loss_backward);
}

// torch 2.15 computes the gradient in four steps, and the first gives a row-major result if the target is expanded.
// Ours must have the same order.
TEST_CASE("soft_margin_loss_backward: the memory order of an expanded target") {
  const std::vector<int64_t> sizes{1, 5, 4}, strides{5, 1, 5}, expanded{5, 1, 0}, packed{20, 4, 1};
  Tensor self = Tensor::empty_strided(sizes, strides, DType::kFloat32);
  Tensor target = Tensor::empty_strided(sizes, expanded, DType::kFloat32);
  Tensor grad = Tensor::empty({}, DType::kFloat32);
  *grad.data_as<float>() = 2;
  for (int i = 0; i < 5; ++i) {
    target.data_as<float>()[i] = i % 2 ? 1.0f : -1.0f;
    for (int j = 0; j < 4; ++j) self.data_as<float>()[i + 5 * j] = 0.25f * static_cast<float>(i - j);
  }
  const Tensor out = cpu::soft_margin_loss_backward(grad, self, target, 2);
  CHECK(std::ranges::equal(out.strides(), packed));
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 4; ++j) {
      const double x = 0.25 * (i - j), y = i % 2 ? 1 : -1, z = std::exp(-y * x);
      CHECK(static_cast<double>(out.data_as<float>()[4 * i + j]) ==
            doctest::Approx(-2 * y * z / (1 + z)).epsilon(1e-6));
    }
}
