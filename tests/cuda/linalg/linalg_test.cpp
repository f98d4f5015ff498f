#include "src/cuda/linalg/linalg.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

using Sizes = std::vector<int64_t>;
constexpr DType kDtypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};
constexpr int64_t kBatch = 3, kN = 7;

Numbers square(DType dtype, uint32_t seed, double diagonal) {
  Numbers a = random_numbers(kN * kN, seed, is_complex(dtype));
  for (int64_t i = 0; i < kN; ++i) a[static_cast<size_t>(i * kN + i)] += diagonal;
  return rounded(a, dtype);
}
// kBatch matrices in a row.
template <class F>
Numbers batch(const F& make) {
  Numbers all;
  for (uint32_t i = 0; i < kBatch; ++i) {
    const Numbers one = make(i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}
Numbers matrix(const Numbers& all, int64_t i, int64_t count) {
  return {all.begin() + i * count, all.begin() + (i + 1) * count};
}
Numbers triangle(Numbers a, bool upper, bool unit) {
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      auto& value = a[static_cast<size_t>(i * kN + j)];
      if (i == j ? false : upper ? i > j : i < j) value = 0;
      if (unit && i == j) value = 1;
    }
  return a;
}
Numbers lower_factor(const Numbers& a) {
  Numbers l(a.size());
  const auto at = [](int64_t i, int64_t j) { return static_cast<size_t>(i * kN + j); };
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      std::complex<double> sum = a[at(i, j)];
      for (int64_t k = 0; k < j; ++k) sum -= l[at(i, k)] * std::conj(l[at(j, k)]);
      l[at(i, j)] = i == j ? std::sqrt(sum) : sum / l[at(j, j)];
    }
  return l;
}

}  // namespace

TEST_CASE("triangular_solve: op(A) X is what was given") {
  for (const DType dtype : kDtypes)
    for (const int64_t count : {int64_t{1}, kBatch})
      for (const bool upper : {true, false})
        for (const bool transpose : {true, false})
          for (const bool unit : {true, false}) {
            const Numbers a = batch([&](uint32_t i) { return square(dtype, i, kN); });
            const Numbers b = rounded(random_numbers(kBatch * kN * 2, 9, is_complex(dtype)), dtype);
            const Sizes a_sizes{count, kN, kN}, b_sizes{count, kN, 2};
            const auto first = [&](const Numbers& all, int64_t each) {
              return Numbers(all.begin(), all.begin() + count * each);
            };
            const auto [x, copied] =
                triangular_solve(on_device(first(b, kN * 2), b_sizes, dtype),
                                 on_device(first(a, kN * kN), a_sizes, dtype), upper, transpose, unit);
            const Numbers solved = numbers_of(x);
            for (int64_t i = 0; i < count; ++i) {
              Numbers t = triangle(matrix(a, i, kN * kN), upper, unit);
              if (transpose) t = transposed(t, kN, kN);
              // A unit triangle is badly conditioned, so errors grow with its inverse.
              CHECK(difference(product(t, matrix(solved, i, kN * 2), kN, kN, 2), matrix(b, i, kN * 2),
                               100 * tolerance_of(dtype)) == "");
            }
            CHECK(difference(copied, a_sizes, first(a, kN * kN), 0) == "");
          }
}

TEST_CASE("cholesky_solve: A X is what was given") {
  for (const DType dtype : kDtypes)
    for (const bool upper : {true, false}) {
      const Numbers a = batch([&](uint32_t i) {
        const Numbers g = square(dtype, i, 0);
        Numbers p = product(g, transposed(g, kN, kN, true), kN, kN, kN);
        for (int64_t d = 0; d < kN; ++d) p[static_cast<size_t>(d * kN + d)] += kN;
        return p;
      });
      const Numbers factor = batch([&](uint32_t i) {
        const Numbers l = lower_factor(matrix(a, i, kN * kN));
        return upper ? transposed(l, kN, kN, true) : l;
      });
      const Numbers b = rounded(random_numbers(kBatch * kN * 2, 4, is_complex(dtype)), dtype);
      const Tensor l = on_device(factor, {kBatch, kN, kN}, dtype);
      const Numbers x = numbers_of(cholesky_solve(on_device(b, {kBatch, kN, 2}, dtype), l, upper));
      const Numbers inverse = numbers_of(cholesky_inverse(l, upper));
      Numbers identity(kN * kN);
      for (int64_t d = 0; d < kN; ++d) identity[static_cast<size_t>(d * kN + d)] = 1;
      for (int64_t i = 0; i < kBatch; ++i) {
        CHECK(difference(product(matrix(a, i, kN * kN), matrix(x, i, kN * 2), kN, kN, 2), matrix(b, i, kN * 2),
                         10 * tolerance_of(dtype)) == "");
        CHECK(difference(product(matrix(a, i, kN * kN), matrix(inverse, i, kN * kN), kN, kN, kN), identity,
                         10 * tolerance_of(dtype)) == "");
      }
    }
}

TEST_CASE("geqrf: Q R is what was given, Q applied by ormqr") {
  for (const DType dtype : kDtypes)
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{7, 7}, {9, 4}, {4, 9}}) {
      const int64_t k = std::min(m, n);
      const Numbers in = rounded(random_numbers(kBatch * m * n, 11, is_complex(dtype)), dtype);
      const auto [a, tau] = geqrf(on_device(in, {kBatch, m, n}, dtype));
      Numbers r = numbers_of(a);
      for (int64_t i = 0; i < kBatch * m; ++i)
        for (int64_t j = 0; j < n; ++j)
          if (i % m > j) r[static_cast<size_t>(i * n + j)] = 0;
      CHECK(difference(ormqr(a, tau, on_device(r, {kBatch, m, n}, dtype), true, false), {kBatch, m, n}, in,
                       10 * tolerance_of(dtype)) == "");
      // Q^H A is R.
      CHECK(difference(ormqr(a, tau, on_device(in, {kBatch, m, n}, dtype), true, true), {kBatch, m, n}, r,
                       10 * tolerance_of(dtype)) == "");
      CHECK(tau.size(1) == k);
    }
}

TEST_CASE("ormqr: on the right") {
  const DType dtype = DType::kComplex128;
  const Numbers in = random_numbers(kN * kN, 5, true), c = random_numbers(2 * kN, 6, true);
  const auto [a, tau] = geqrf(on_device(in, {kN, kN}, dtype));
  const Tensor other = on_device(c, {2, kN}, dtype);
  const Tensor there = ormqr(a, tau, other, false, false);
  CHECK(difference(ormqr(a, tau, there, false, true), {2, kN}, c, 1e-10) == "");
}

TEST_CASE("lu_unpack: triangles and a permutation") {
  const Numbers lu = random_numbers(2 * 4 * 3, 8);
  const Tensor data = on_device(lu, {2, 4, 3}, DType::kFloat64);
  const Tensor pivots = on_device({2, 4, 3, 1, 2, 4}, {2, 3}, DType::kInt32);
  const auto [P, L, U] = lu_unpack(data, pivots, true, true);
  Numbers l(2 * 4 * 3), u(2 * 3 * 3), p(2 * 4 * 4);
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 3; ++j) {
        const auto value = lu[(b * 4 + i) * 3 + j];
        l[(b * 4 + i) * 3 + j] = i > j ? value : i == j ? 1 : 0;
        if (i < 3) u[(b * 3 + i) * 3 + j] = i <= j ? value : 0;
      }
  // Rows 0 1 2 3 after exchanges with 1, 3, 2 of the first matrix; with 0, 1, 3 of the second.
  const size_t order[2][4] = {{1, 3, 2, 0}, {0, 1, 3, 2}};
  for (size_t b = 0; b < 2; ++b)
    for (size_t r = 0; r < 4; ++r) p[(b * 4 + order[b][r]) * 4 + r] = 1;
  CHECK(difference(L, {2, 4, 3}, l, 0) == "");
  CHECK(difference(U, {2, 3, 3}, u, 0) == "");
  CHECK(difference(P, {2, 4, 4}, p, 0) == "");
  const auto none = lu_unpack(data, pivots, false, false);
  for (const Tensor& t : none) CHECK(t.numel() == 0);
}

TEST_CASE("cholesky_inverse: errors name the operator") {
  CHECK_THROWS_AS(cholesky_inverse(on_device(Numbers(6), {2, 3}, DType::kFloat32), false), Error);
  CHECK_THROWS_AS(cholesky_inverse(on_device(Numbers(4), {2, 2}, DType::kInt32), false), Error);
  CHECK(cholesky_inverse(on_device({}, {0, 0}, DType::kFloat32), false).numel() == 0);
}

}  // namespace sconce::gpu
