
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sconce/error.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;
TEST_CASE("max_pool2d_with_indices: layouts, dtypes, windows, ties and NaN") {
  run_kernel("pooling.cases", "max_pool2d_with_indices", cpu::max_pool2d_with_indices);
}
TEST_CASE("max_pool2d_with_indices: windows that hold nothing have the least number of their dtype") {
  run_kernel("found_elements.cases", "aten::max_pool2d_with_indices", cpu::max_pool2d_with_indices);
}
TEST_CASE("max_pool3d_with_indices: layouts, dtypes, windows, ties and NaN") {
  run_kernel("pooling.cases", "max_pool3d_with_indices", cpu::max_pool3d_with_indices);
}
TEST_CASE("avg_pool2d: padding, ceil mode, divisors") { run_kernel("pooling.cases", "avg_pool2d", cpu::avg_pool2d); }
TEST_CASE("avg_pool3d: padding, ceil mode, divisors") { run_kernel("pooling.cases", "avg_pool3d", cpu::avg_pool3d); }
TEST_CASE("_adaptive_avg_pool2d: even and uneven windows") {
  run_kernel("pooling.cases", "_adaptive_avg_pool2d", cpu::_adaptive_avg_pool2d);
}
TEST_CASE("_adaptive_avg_pool3d: even and uneven windows") {
  run_kernel("pooling.cases", "_adaptive_avg_pool3d", cpu::_adaptive_avg_pool3d);
}
TEST_CASE("adaptive_max_pool2d: even and uneven windows") {
  run_kernel("pooling.cases", "adaptive_max_pool2d", cpu::adaptive_max_pool2d);
}
TEST_CASE("adaptive_max_pool3d: even and uneven windows") {
  run_kernel("pooling.cases", "adaptive_max_pool3d", cpu::adaptive_max_pool3d);
}

// Large enough for several threads; the reference is a plain loop in double.
TEST_CASE("pooling: several threads, both layouts") {
  const int before = kernel_threads();
  const int64_t n = 2, c = 24, h = 61, w = 53, kernel = 3, stride = 2, oh = 31, ow = 27;
  Tensor rows = Tensor::empty(Ints{n, c, h, w}, DType::kFloat32);
  for (int64_t i = 0; i < rows.numel(); ++i)
    rows.data_as<float>()[i] = static_cast<float>((i * 2654435761u >> 7) % 1000) / 8;
  Tensor last = Tensor::empty_strided(Ints{n, c, h, w}, Ints{c * h * w, 1, c * w, c}, DType::kFloat32);
  for (int64_t b = 0; b < n * c; ++b)
    for (int64_t i = 0; i < h * w; ++i)
      last.data_as<float>()[b / c * c * h * w + i * c + b % c] = rows.data_as<float>()[b * h * w + i];
  for (int threads : {1, 3})
    for (const Tensor& x : {rows, last}) {
      set_kernel_threads(threads);
      const auto [max, at] = cpu::max_pool2d_with_indices(x, Ints{kernel}, Ints{stride}, Ints{1}, Ints{1}, false);
      const Tensor mean = cpu::avg_pool2d(x, Ints{kernel}, Ints{stride}, Ints{1}, false, true, std::nullopt);
      REQUIRE(max.size(2) == oh);
      REQUIRE(max.size(3) == ow);
      for (int64_t b = 0; b < n; ++b)
        for (int64_t k = 0; k < c; ++k)
          for (int64_t y = 0; y < oh; ++y)
            for (int64_t z = 0; z < ow; ++z) {
              double best = -1, sum = 0;
              int64_t place = 0;
              for (int64_t i = std::max<int64_t>(y * 2 - 1, 0); i < std::min(y * 2 + 2, h); ++i)
                for (int64_t j = std::max<int64_t>(z * 2 - 1, 0); j < std::min(z * 2 + 2, w); ++j) {
                  const double v = rows.data_as<float>()[((b * c + k) * h + i) * w + j];
                  sum += v;
                  if (v > best) {
                    best = v;
                    place = i * w + j;
                  }
                }
              const int64_t o = b * max.stride(0) + k * max.stride(1) + y * max.stride(2) + z * max.stride(3);
              REQUIRE(max.data_as<float>()[o] == best);
              REQUIRE(at.data_as<int64_t>()[o] == place);
              REQUIRE(std::abs(mean.data_as<float>()[o] - sum / 9) < 1e-4);
            }
    }
  set_kernel_threads(before);
}

// PyTorch lets the first dimension, batch or channels, be empty.
TEST_CASE("adaptive_max_pool2d, adaptive_max_pool3d: a first dimension of size 0") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{0, 4, 4}, std::vector<int64_t>{0, 2, 4, 4}}) {
    const auto got = cpu::adaptive_max_pool2d(Tensor::empty(sizes, DType::kFloat32), std::vector<int64_t>{2, 2});
    CHECK(got[0].size(0) == 0);
    CHECK(got[1].size(got[1].dim() - 1) == 2);
  }
  const auto volume = cpu::adaptive_max_pool3d(Tensor::empty(std::vector<int64_t>{0, 4, 4, 4}, DType::kFloat32),
                                               std::vector<int64_t>{2, 2, 2});
  CHECK(std::ranges::equal(volume[0].sizes(), std::vector<int64_t>{0, 2, 2, 2}));
  CHECK_THROWS_WITH_AS(cpu::adaptive_max_pool2d(Tensor::empty(std::vector<int64_t>{2, 0, 4, 4}, DType::kFloat32),
                                                std::vector<int64_t>{2, 2}),
                       doctest::Contains("non-zero size for non-batch dimensions"), Error);
}
