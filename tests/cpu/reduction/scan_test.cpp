#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

namespace {
constexpr const char* kFile = "sorting.cases";
}  // namespace

TEST_CASE("cumsum: as PyTorch") { run_kernel(kFile, "cumsum", cpu::cumsum); }
TEST_CASE("cumprod: as PyTorch") { run_kernel(kFile, "cumprod", cpu::cumprod); }
TEST_CASE("cummax: as PyTorch") { run_kernel(kFile, "cummax", cpu::cummax); }
TEST_CASE("cummin: as PyTorch") { run_kernel(kFile, "cummin", cpu::cummin); }
TEST_CASE("logcumsumexp: as PyTorch") { run_kernel(kFile, "logcumsumexp", cpu::logcumsumexp); }

TEST_CASE("cumsum: large, along each dimension, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2}) {
    set_kernel_threads(threads);
    const Ints sizes{70, 33, 301};
    Tensor t = Tensor::empty(sizes, DType::kInt32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<int32_t>()[i] = static_cast<int32_t>(i * 31 % 97) - 40;
    for (int64_t dim = 0; dim < 3; ++dim) {
      const Tensor got = cpu::cumsum(t, dim, std::nullopt);
      REQUIRE(got.dtype() == DType::kInt64);
      int64_t wrong = 0;
      for (int64_t i = 0; i < t.numel(); ++i) {
        const int64_t step = t.stride(dim), at = i / step % sizes[static_cast<size_t>(dim)];
        const int64_t previous = at == 0 ? 0 : got.data_as<int64_t>()[i - step];
        wrong += got.data_as<int64_t>()[i] != previous + t.data_as<int32_t>()[i];
      }
      CHECK(wrong == 0);
    }
  }
  set_kernel_threads(before);
}
