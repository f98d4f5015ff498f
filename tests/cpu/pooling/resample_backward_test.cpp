#include "src/cpu/pooling/resample_backward.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "src/cpu/pooling/resample_antialias.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
TEST_CASE("upsample_linear1d_backward: scales, corners, halves") {
  run_kernel("gradients.cases", "upsample_linear1d_backward", cpu::upsample_linear1d_backward);
}
TEST_CASE("upsample_bicubic2d_backward: scales, corners, layouts") {
  run_kernel("gradients.cases", "upsample_bicubic2d_backward", cpu::upsample_bicubic2d_backward);
}
TEST_CASE("upsample_trilinear3d_backward: scales, corners, layouts") {
  run_kernel("gradients.cases", "upsample_trilinear3d_backward", cpu::upsample_trilinear3d_backward);
}
TEST_CASE("replication_pad1d_backward: cropping too") {
  run_kernel("gradients.cases", "replication_pad1d_backward", cpu::replication_pad1d_backward);
}
TEST_CASE("replication_pad2d_backward: cropping, layouts") {
  run_kernel("gradients.cases", "replication_pad2d_backward", cpu::replication_pad2d_backward);
}
TEST_CASE("upsample_nearest3d_backward: row-major whatever the gradient is") {
  run_kernel("sampling.cases", "upsample_nearest3d_backward", cpu::upsample_nearest3d_backward);
  run_kernel("sampling.cases", "_upsample_nearest_exact3d_backward", cpu::_upsample_nearest_exact3d_backward);
}
TEST_CASE("_upsample_bicubic2d_aa_backward: row-major whatever the gradient is, unlike the bilinear one") {
  run_kernel("sampling.cases", "_upsample_bicubic2d_aa_backward",
             upsample_aa_backward<cpu::low_pass_backward, LowPass::kBicubic>);
  run_kernel("sampling.cases", "_upsample_bilinear2d_aa_backward",
             upsample_aa_backward<cpu::low_pass_backward, LowPass::kBilinear>);
}

// Expected strides and values come from PyTorch.
TEST_CASE("replication_pad3d_backward, reflection_pad3d_backward: as channels-last as self") {
  Tensor grad = Tensor::empty(std::vector<int64_t>{1, 2, 2, 2, 5}, DType::kFloat32);
  fill(grad, 1.0);
  const std::vector<int64_t> strides{24, 1, 12, 6, 2}, padding{1, 1, 0, 0, 0, 0};
  const Tensor self = Tensor::empty_strided(std::vector<int64_t>{1, 2, 2, 2, 3}, strides, DType::kFloat32);
  const auto check = [&](const Tensor& got, std::array<float, 3> row) {
    CHECK(std::ranges::equal(got.strides(), strides));
    for (int64_t i = 0; i < 24; ++i) CHECK(contiguous(got).data_as<float>()[i] == row[static_cast<size_t>(i % 3)]);
  };
  check(cpu::replication_pad3d_backward(grad, self, padding), {2, 1, 2});
  check(cpu::reflection_pad3d_backward(grad, self, padding), {1, 3, 1});
}

TEST_CASE("upsample_bicubic2d_backward: an image one row high keeps the whole gradient") {
  for (const int64_t width : {1, 2, 7, 64})
    for (const int64_t output : {1, 2, 31, 32}) {
      CAPTURE(width);
      CAPTURE(output);
      const std::vector<int64_t> from{1, 1, 1, width}, to{1, 1, 1, output}, size{1, output};
      Tensor grad = Tensor::empty(to, DType::kFloat64);
      fill(grad, 1.0);
      const Tensor sums = cpu::upsample_bicubic2d_backward(grad, size, from, false, std::nullopt, std::nullopt);
      double total = 0;
      for (int64_t i = 0; i < width; ++i) total += sums.data_as<double>()[i];
      CHECK(total == doctest::Approx(static_cast<double>(output)));
    }
}
