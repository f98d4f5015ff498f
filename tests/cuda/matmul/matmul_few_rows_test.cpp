#include "src/cuda/matmul/matmul_few_rows.h"

#include <doctest/doctest.h>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

// [k, n] in the given memory order; lines are `wide` elements longer.
Tensor weights(const Numbers& b, int64_t k, int64_t n, bool by_rows, int64_t wide, DType dtype) {
  const int64_t lines = by_rows ? k : n, length = by_rows ? n : k;
  Numbers held(static_cast<size_t>(lines * (length + wide)), 1e9);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      held[static_cast<size_t>((by_rows ? i * (n + wide) + j : j * (k + wide) + i))] =
          b[static_cast<size_t>(i * n + j)];
  const std::vector<int64_t> sizes{k, n}, by_row{n + wide, 1}, by_column{1, k + wide};
  return on_device(held, {lines, length + wide}, dtype).as_strided(sizes, by_rows ? by_row : by_column, 0);
}

}  // namespace

TEST_CASE("mm_out: few rows, both sides of every choice") {
  uint32_t seed = 1;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    for (const int64_t m : {1, 2, 4, 5, 8, 9})
      for (const auto& [k, n] : {std::array<int64_t, 2>{8, 8}, {24, 40}, {63, 5}, {520, 33}, {4104, 16}, {64, 4240}})
        for (const bool by_rows : {false, true})
          for (const int64_t wide : {0, 1, 8}) {
            const Numbers a = rounded(random_numbers(m * k, seed++), dtype),
                          b = rounded(random_numbers(k * n, seed++), dtype);
            const Numbers expected = product(a, b, m, k, n);
            const Tensor x = on_device(a, {m, k}, dtype), w = weights(b, k, n, by_rows, wide, dtype);
            Tensor out = on_device(Numbers(static_cast<size_t>(m * n), 7), {m, n}, dtype);
            mm_out(out, x, w);
            INFO("m " << m << " k " << k << " n " << n << " by_rows " << by_rows << " wide " << wide);
            const double tolerance = tolerance_of(dtype) * 4;
            CHECK(difference(out, {m, n}, expected, tolerance) == "");
            const Numbers c = rounded(random_numbers(n, seed++), dtype);
            addmm_out(out, on_device(c, {n}, dtype), x, w, 1, 0.5);
            Numbers sum = expected;
            for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] * 0.5 + c[i % c.size()];
            CHECK(difference(out, {m, n}, sum, tolerance) == "");
          }
}

TEST_CASE("mm_out: few rows into strided results and over an operand") {
  const DType dtype = DType::kFloat32;
  const Numbers a = random_numbers(2 * 16, 1), b = random_numbers(16 * 16, 2);
  const Numbers expected = product(a, b, 2, 16, 16);
  const Tensor x = on_device(a, {2, 16}, dtype), w = on_device(b, {16, 16}, dtype);
  Tensor rows = on_device(Numbers(2 * 20, 7), {2, 20}, dtype);
  const std::vector<int64_t> sizes{2, 16}, strides{20, 1}, beside{2, 4}, turned{1, 2};
  Tensor out = rows.as_strided(sizes, strides, 0);
  mm_out(out, x, w);
  CHECK(difference(out, {2, 16}, expected, 1e-5) == "");
  CHECK(difference(rows.as_strided(beside, strides, 16), {2, 4}, Numbers(8, 7), 0) == "");
  Tensor columns = on_device(Numbers(32), {16, 2}, dtype).as_strided(sizes, turned, 0);
  mm_out(columns, x, w);
  CHECK(difference(columns, {2, 16}, expected, 1e-5) == "");
  Tensor over = x;
  mm_out(over, x, w);
  CHECK(difference(over, {2, 16}, expected, 1e-5) == "");
}

}  // namespace sconce::gpu
