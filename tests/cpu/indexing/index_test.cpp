#include "src/cpu/indexing/index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sconce/error.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

namespace {

constexpr const char* kFile = "indexing.cases";

Tensor random_positions(int64_t count, int64_t below) {
  Tensor t = Tensor::empty({&count, 1}, DType::kInt64);
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    t.data_as<int64_t>()[i] = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
  }
  return t;
}

Tensor numbered(const Ints& sizes) {
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i % 4093);
  return t;
}

}  // namespace

TEST_CASE("index_Tensor: as PyTorch") { run_kernel(kFile, "index_Tensor", cpu::index_Tensor); }

TEST_CASE("index_put: as PyTorch") { run_kernel(kFile, "index_put", cpu::index_put); }

TEST_CASE("index_put_out: into any layout") { run_kernel(kFile, "index_put_out", cpu::index_put_out); }

TEST_CASE("index_put_out: self, values and indices may be what is written") {
  Tensor t = Tensor::empty(Ints{4}, DType::kInt64);
  for (int i = 0; i < 4; ++i) t.data_as<int64_t>()[i] = 3 - i;
  const Tensor* index = &t;
  cpu::index_put_out(t, t, {&index, 1}, t, false);  // t[t] = t
  for (int i = 0; i < 4; ++i) CHECK(t.data_as<int64_t>()[i] == i);
  cpu::index_put_out(t, t, {&index, 1}, t, true);
  for (int i = 0; i < 4; ++i) CHECK(t.data_as<int64_t>()[i] == 2 * i);
}

// Indices have duplicates, of which the last must win with any number of threads.
TEST_CASE("index_Tensor, index_put: large, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2}) {
    set_kernel_threads(threads);
    for (const auto& [rows, columns, dim] : {std::tuple{500, 96, 0}, {70000, 1, 0}, {40, 3000, 1}, {3, 100000, 1}}) {
      CAPTURE(threads);
      CAPTURE(rows);
      const Tensor self = numbered({rows, columns});
      const int64_t n = dim == 0 ? rows : columns, count = n + n / 2;
      const Tensor index = random_positions(count, n);
      const Tensor* p[] = {nullptr, &index};
      const Tensor* const* handles[] = {&p[1 - dim], &p[dim]};
      const OptTensorList list(handles, static_cast<size_t>(dim) + 1);
      const Tensor got = cpu::index_Tensor(self, list);
      const auto* at = index.data_as<int64_t>();
      const int64_t other = dim == 0 ? columns : rows;
      std::vector<float> want(self.data_as<float>(), self.data_as<float>() + self.numel()), sums = want;
      int64_t wrong = 0;
      const auto self_at = [&](int64_t i, int64_t j) { return dim == 0 ? i * columns + j : j * columns + i; };
      const auto got_at = [&](int64_t i, int64_t j) { return dim == 0 ? i * columns + j : j * count + i; };
      Tensor values = numbered({got.size(0), got.size(1)});
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < other; ++j) {
          wrong += got.data_as<float>()[got_at(i, j)] != self.data_as<float>()[self_at(at[i], j)];
          want[static_cast<size_t>(self_at(at[i], j))] = values.data_as<float>()[got_at(i, j)];
          sums[static_cast<size_t>(self_at(at[i], j))] += values.data_as<float>()[got_at(i, j)];
        }
      CHECK(wrong == 0);
      const Tensor put = cpu::index_put(self, list, values, false), added = cpu::index_put(self, list, values, true);
      for (int64_t i = 0; i < self.numel(); ++i) {
        wrong += put.data_as<float>()[i] != want[static_cast<size_t>(i)];
        wrong += added.data_as<float>()[i] != sums[static_cast<size_t>(i)];
      }
      CHECK(wrong == 0);
    }
  }
  set_kernel_threads(before);
}

TEST_CASE("index_Tensor: an index out of bounds is found in every chunk and on every thread") {
  const int before = kernel_threads();
  for (int threads : {1, 2}) {
    set_kernel_threads(threads);
    const Tensor self = numbered({1000});
    Tensor index = random_positions(100000, 1000);
    for (int64_t bad : {0, 777, 99999}) {
      const int64_t good = std::exchange(index.data_as<int64_t>()[bad], 1000);
      const Tensor* p = &index;
      const Tensor* const* handle = &p;
      CHECK_THROWS_WITH_AS(cpu::index_Tensor(self, {&handle, 1}),
                           "index 1000 is out of bounds for dimension 0 with size 1000", Error);
      CHECK_THROWS_AS(cpu::index_put(self, {&handle, 1}, numbered({1}), true), Error);
      index.data_as<int64_t>()[bad] = good;
    }
  }
  set_kernel_threads(before);
}

// Expected strides and values come from PyTorch.
TEST_CASE("index_Tensor: int32 indices that overlap are walked as their int64 copies") {
  Tensor numbers = Tensor::empty(Ints{10}, DType::kInt32);
  std::copy_n(std::array{0, 9, 2, 9, 4, 9, 1, 9, 3, 9}.data(), 10, numbers.data_as<int32_t>());
  const Tensor index = numbers.as_strided(Ints{1, 5, 2}, Ints{1, 0, 2}, 0);
  const Tensor self = numbered({5});
  const Tensor* const given = &index;
  const Tensor* const* const list[] = {&given};
  const Tensor got = contiguous(cpu::index_Tensor(self, OptTensorList(list, 1)));
  CHECK(std::ranges::equal(cpu::index_Tensor(self, OptTensorList(list, 1)).strides(), Ints{5, 1, 5}));
  for (int64_t i = 0; i < 10; ++i) CHECK(got.data_as<float>()[i] == static_cast<float>(i % 2 * 2));
}
