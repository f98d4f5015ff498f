#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

namespace {

constexpr const char* kFile = "sorting.cases";

// Pseudo-random floats, NaN and infinities among them, with repeats.
Tensor noise(const Ints& sizes, DType dtype, uint64_t range) {
  Tensor t = Tensor::empty(sizes, DType::kFloat64);
  uint64_t state = 7;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t x = state >> 20;
    const double value = static_cast<double>(x % range) / 8 - static_cast<double>(range) / 16;
    const bool odd = is_floating(dtype) && x % 101 == 0;
    t.data_as<double>()[i] = odd ? (x % 2 ? std::nan("") : -0.0) : is_floating(dtype) ? value : std::abs(value);
  }
  return to_dtype(t, dtype);
}

}  // namespace

TEST_CASE("sort: as PyTorch") { run_kernel(kFile, "sort", cpu::sort); }

TEST_CASE("sort_stable: as PyTorch") { run_kernel(kFile, "sort_stable", cpu::sort_stable); }

TEST_CASE("topk: as PyTorch, ties included") { run_kernel(kFile, "topk", cpu::topk); }

TEST_CASE("topk: few of short rows, as PyTorch, ties included") { run_kernel(kFile, "topk_short", cpu::topk); }

TEST_CASE("sort_stable: every dtype and length against std::stable_sort, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2})
    for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                        DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64})
      for (int64_t n : {1, 7, 8, 9, 63, 95, 96, 97, 159, 160, 161, 1000, 70001})
        for (bool descending : {false, true}) {
          set_kernel_threads(threads);
          CAPTURE(dtype_name(dtype));
          CAPTURE(n);
          CAPTURE(descending);
          const int64_t rows = n < 1000 ? 3 : 2;
          const Tensor t = noise({rows, n}, dtype, n % 2 ? 900 : 1000000);
          const auto [values, positions] = cpu::sort_stable(t, true, 1, descending);
          dispatch_real(dtype, "test", [&]<class T>() {
            for (int64_t row = 0; row < rows; ++row) {
              const T* in = t.data_as<T>() + row * n;
              std::vector<int64_t> want(static_cast<size_t>(n));
              std::iota(want.begin(), want.end(), 0);
              const auto number = [&](int64_t i) { return static_cast<ComputeType<T>>(in[i]); };
              std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
                const auto x = number(a), y = number(b);
                return descending ? (x != x && y == y) || x > y : (x == x && y != y) || x < y;
              });
              CHECK(std::equal(want.begin(), want.end(), positions.template data_as<int64_t>() + row * n));
              int64_t wrong = 0;
              for (int64_t i = 0; i < n; ++i)
                wrong += std::memcmp(values.template data_as<T>() + row * n + i, in + want[static_cast<size_t>(i)],
                                     sizeof(T)) != 0;
              CHECK(wrong == 0);
            }
          });
        }
  set_kernel_threads(before);
}

TEST_CASE("topk: long rows, few and many, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2})
    for (int64_t k : {1, 8, 400}) {
      set_kernel_threads(threads);
      const int64_t rows = 4, n = 10007;
      const Tensor t = noise({rows, n}, DType::kFloat32, 1 << 22);
      const auto [values, positions] = cpu::topk(t, k, 1, true, true);
      const auto sorted = cpu::sort(t, 1, true);
      for (int64_t row = 0; row < rows; ++row) {
        CHECK(std::memcmp(values.data_as<float>() + row * k, sorted[0].data_as<float>() + row * n,
                          static_cast<size_t>(k) * sizeof(float)) == 0);
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at = positions.data_as<int64_t>()[row * k + i];
          CHECK(std::memcmp(t.data_as<float>() + row * n + at, values.data_as<float>() + row * k + i, 4) == 0);
        }
      }
    }
  set_kernel_threads(before);
}
