#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "sconce/error.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/fill.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

namespace {
constexpr const char* kFile = "sorting.cases";
}

TEST_CASE("scatter_src_out: as PyTorch") { run_kernel(kFile, "scatter_src_out", cpu::scatter_src_out); }

TEST_CASE("scatter_value_out: as PyTorch") { run_kernel(kFile, "scatter_value_out", cpu::scatter_value_out); }

TEST_CASE("scatter_reduce_two_out: as PyTorch") {
  run_kernel(kFile, "scatter_reduce_two_out", cpu::scatter_reduce_two_out);
}

TEST_CASE("scatter_reduce_two_out: means where the index is stretched, as PyTorch") {
  run_kernel(kFile, "scatter_mean", cpu::scatter_reduce_two_out);
}

TEST_CASE("scatter_src_out: out may be self, not src") {
  Tensor t = Tensor::empty(Ints{4}, DType::kFloat32), src = Tensor::empty(Ints{2}, DType::kFloat32);
  Tensor index = Tensor::empty(Ints{2}, DType::kInt64);
  zero(t);
  fill(src, 5.0);
  zero(index);
  cpu::scatter_src_out(t, t, 0, index, src);
  CHECK(t.data_as<float>()[0] == 5);
  CHECK_THROWS_AS(cpu::scatter_src_out(t, t, 0, index, t), Error);
}

// If indices repeat, the last one along dim wins, and sums are formed in that order, whatever the number of threads.
TEST_CASE("scatter_src_out, scatter_reduce_two_out: large, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2})
    for (const auto& [rows, columns, count, dim] : {std::tuple{300, 200, 900, 0},
                                                    {200, 300, 700, 1},
                                                    {1, 5000, 60000, 1},
                                                    {5000, 1, 60000, 0},
                                                    {50, 40, 6000, 0}}) {
      set_kernel_threads(threads);
      CAPTURE(threads);
      CAPTURE(rows);
      const int64_t r = dim == 0 ? count : rows, c = dim == 1 ? count : columns, size = dim == 0 ? rows : columns;
      Tensor index = Tensor::empty(Ints{r, c}, DType::kInt64), src = Tensor::empty(Ints{r, c}, DType::kFloat32);
      uint64_t state = 3;
      for (int64_t i = 0; i < r * c; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        index.data_as<int64_t>()[i] = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(size));
        src.data_as<float>()[i] = static_cast<float>(state >> 40) * 0.001f;
      }
      Tensor self = Tensor::empty(Ints{rows, columns}, DType::kFloat32);
      fill(self, 0.5);
      Tensor last = Tensor::empty(self.sizes(), DType::kFloat32), sum = Tensor::empty(self.sizes(), DType::kFloat32);
      cpu::scatter_src_out(last, self, dim, index, src);
      cpu::scatter_reduce_two_out(sum, self, dim, index, src, "sum", true);
      std::vector<float> want_last(static_cast<size_t>(rows * columns), 0.5f), want_sum = want_last;
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j) {
          const int64_t t = index.data_as<int64_t>()[i * c + j];
          const auto to = static_cast<size_t>(dim == 0 ? t * columns + j : i * columns + t);
          want_last[to] = src.data_as<float>()[i * c + j];
          want_sum[to] += src.data_as<float>()[i * c + j];
        }
      CHECK(std::equal(want_last.begin(), want_last.end(), last.data_as<float>()));
      CHECK(std::equal(want_sum.begin(), want_sum.end(), sum.data_as<float>()));
      index.data_as<int64_t>()[r * c - 1] = size;
      CHECK_THROWS_AS(cpu::scatter_src_out(last, self, dim, index, src), Error);
    }
  set_kernel_threads(before);
}

// Each source row has one index. The kernel divides the targets among threads, or the columns if one target gets most
// rows.
TEST_CASE("scatter_reduce_two_out, scatter_src_out: many rows, the same with any number of threads") {
  const int before = kernel_threads();
  constexpr int64_t kRows = 3001, kWidth = 37, kTargets = 90;
  Tensor index = Tensor::empty(Ints{kRows}, DType::kInt64), src = Tensor::empty(Ints{kRows, kWidth}, DType::kFloat32);
  Tensor self = Tensor::empty(Ints{kTargets, kWidth}, DType::kFloat32);
  fill(self, 0.25);
  for (int64_t i = 0; i < src.numel(); ++i) src.data_as<float>()[i] = 0.9f + static_cast<float>(i % 1013) * 0.0002f;
  const Tensor wide = index.as_strided(Ints{kRows, kWidth}, Ints{1, 0}, 0);
  for (const int64_t spread : {90, 3, 1}) {  // number of targets that rows go to
    for (int64_t i = 0; i < kRows; ++i) index.data_as<int64_t>()[i] = i * 7919 % spread;
    std::vector<Tensor> first;
    for (int threads : {1, 2, 3, 5}) {
      set_kernel_threads(threads);
      CAPTURE(spread);
      CAPTURE(threads);
      std::vector<Tensor> found;
      for (const char* reduce : {"sum", "mean", "amax", "prod"}) {
        found.push_back(Tensor::empty(self.sizes(), DType::kFloat32));
        cpu::scatter_reduce_two_out(found.back(), self, 0, wide, src, reduce, true);
      }
      found.push_back(Tensor::empty(self.sizes(), DType::kFloat32));
      cpu::scatter_src_out(found.back(), self, 0, wide, src);
      if (threads == 1) first = found;
      for (size_t i = 0; i < found.size(); ++i)
        CHECK(std::memcmp(found[i].data(), first[i].data(), found[i].bytes()) == 0);
      index.data_as<int64_t>()[1234] = kTargets;
      Tensor spoilt = Tensor::empty(self.sizes(), DType::kFloat32);
      CHECK_THROWS_AS(cpu::scatter_src_out(spoilt, self, 0, wide, src), Error);
      index.data_as<int64_t>()[1234] = 1234 * 7919 % spread;
    }
    std::vector<float> sums(static_cast<size_t>(kTargets * kWidth), 0.25f);
    for (int64_t i = 0; i < src.numel(); ++i)
      sums[static_cast<size_t>(index.data_as<int64_t>()[i / kWidth] * kWidth + i % kWidth)] += src.data_as<float>()[i];
    CHECK(std::memcmp(sums.data(), first[0].data(), first[0].bytes()) == 0);
  }
  set_kernel_threads(before);
}
