#include "src/cpu/matmul/gemm/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "src/cpu/matmul/gemm/gemm_integer.h"
#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "tests/cpu/matrix_cases.h"

using namespace sconce;
using namespace sconce::matrix_testing;

namespace {

template <class T>
std::vector<T> random_values(int64_t n, Random& random) {
  std::vector<T> values(static_cast<size_t>(n));
  for (T& v : values) v = make_value<T>(random);
  return values;
}

template <class S>
constexpr double kRounding = std::is_same_v<S, Half>                                              ? 0x1p-9
                             : std::is_same_v<S, BFloat16>                                        ? 0x1p-6
                             : std::is_same_v<Sum<S>, double> || std::is_same_v<S, ComplexDouble> ? 1e-13
                                                                                                  : 1e-5;

// Compares c with alpha * a @ b + beta * self, where b is [k, n] with strides b_rs and b_cs, and checks that memory
// after the last column is unchanged.
template <class S, class Factor>
struct Check {
  int64_t m, n, k;
  const Factor* a;
  int64_t a_rs, a_cs;
  const S* b;
  int64_t b_rs, b_cs;
  GemmEpilogue<S> e;
  int wrong(const std::vector<S>& before, const std::vector<S>& c, int64_t c_rs) const {
    int wrong = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < c_rs; ++j) {
        const Exact got = exact(c[static_cast<size_t>(i * c_rs + j)]);
        if (j >= n) {
          wrong += got != exact(before[static_cast<size_t>(i * c_rs + j)]);
          continue;
        }
        Exact sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += exact(a[i * a_rs + p * a_cs]) * exact(b[p * b_rs + j * b_cs]);
        sum *= e.alpha;
        if (e.self) sum += e.beta * exact(e.self[i * e.self_rs + j * e.self_cs]);
        wrong += !(std::abs(got - sum) <= kRounding<S> * (1 + std::abs(sum)));
      }
    return wrong;
  }
};

template <class S, class Factor>
void check_kernels(const GemmKernels<S, Factor>& kernels) {
  constexpr int64_t kSteps = GemmKernels<S, Factor>::kSteps;
  Random random(1);
  const int64_t c_rs = kernels.wide + 3;
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 29})
    for (const int64_t k : {0, 1, 2, 3, 4, 5, 8, 17, 40}) {
      const int64_t steps = (k + kSteps - 1) / kSteps * kSteps;
      auto a = random_values<Factor>(m * steps * 2 + 1, random);
      if (k != steps)
        for (int64_t i = 0; i < m; ++i) a[static_cast<size_t>(i * steps + k)] = Factor{};
      const auto before = random_values<S>(m * c_rs, random), self = random_values<S>(m * c_rs, random);
      for (int64_t n = 1; n <= kernels.wide; n += n % 7 ? 1 : 2)
        for (int form = 0; form < 6; ++form) {
          GemmEpilogue<S> e;
          if (form > 0) e = {1, 1, self.data(), c_rs, 1};
          if (form == 2) e.self_rs = 0;
          if (form == 3) e.self_cs = 0, e.self_rs = 1;
          if (form == 4) e.alpha = 2, e.beta = -1;
          if (form == 5) e = {-3, 1, nullptr, 0, 0};
          const bool rows = kSteps == 2 || form % 2;
          const int64_t a_rs = rows ? steps : 1, a_cs = rows ? 1 : m;
          const auto b = random_values<S>(k * n * 2 + 1, random);
          for (const bool by_columns : {false, true}) {
            const int64_t b_rs = by_columns ? 1 : n, b_cs = by_columns ? k : 1;
            const Check<S, Factor> check{m, n, k, a.data(), a_rs, a_cs, b.data(), b_rs, b_cs, e};
            std::vector<S> panel(static_cast<size_t>(steps * kernels.panel_width(n)));
            kernels.pack(k, n, b.data(), b_rs, b_cs, panel.data());
            auto c = before;
            kernels.panel(m, steps, a.data(), a_rs, a_cs, panel.data(), kernels.panel_width(n), n, e, c.data(), c_rs);
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(form);
            REQUIRE(check.wrong(before, c, c_rs) == 0);
            if (kernels.stream && !by_columns && m <= kStreamRows) {
              c = before;
              kernels.stream(m, n, k, a.data(), a_rs, a_cs, b.data(), n, e, c.data(), c_rs);
              REQUIRE(check.wrong(before, c, c_rs) == 0);
            }
            if (by_columns) {
              const Check<S, Factor> dots{m, n, k, a.data(), steps, 1, b.data(), 1, k, e};
              c = before;
              kernels.dot(m, n, k, a.data(), steps, b.data(), k, e, c.data(), c_rs);
              REQUIRE(dots.wrong(before, c, c_rs) == 0);
            }
          }
        }
    }
}

void check_set(const GemmKernelSet& set) {
  check_kernels(std::get<GemmKernels<float>>(set));
  check_kernels(std::get<GemmKernels<double>>(set));
  check_kernels(std::get<GemmKernels<Half>>(set));
  check_kernels(std::get<GemmKernels<BFloat16>>(set));
  check_kernels(std::get<GemmKernels<ComplexFloat>>(set));
  check_kernels(std::get<GemmKernels<ComplexDouble>>(set));
}

}  // namespace

TEST_CASE("gemm: the inner loops for AVX2") { check_set(kGemmAvx2); }

TEST_CASE("gemm: the inner loops for AVX-512") {
  if (has_avx512())
    check_set(kGemmAvx512);
  else
    MESSAGE("skipped: this CPU has no AVX-512");
}

TEST_CASE("gemm: the inner loops for AVX512_BF16") {
  if (gemm_pair_kernels())
    check_kernels(*gemm_pair_kernels());
  else
    MESSAGE("skipped: this CPU has no AVX512_BF16");
}

TEST_CASE("gemm: rows of b read from end to end, more columns than sums are kept for") {
  Random random(2);
  for (const GemmKernelSet* set : {&kGemmAvx2, &kGemmAvx512}) {
    if (set == &kGemmAvx512 && !has_avx512()) continue;
    const auto& kernels = std::get<GemmKernels<float>>(*set);
    for (const int64_t m : {1, 3, 8}) {
      const int64_t n = 5003, k = 21;
      const auto a = random_values<float>(m * k, random), b = random_values<float>(k * n, random);
      const auto self = random_values<float>(n, random), before = random_values<float>(m * n, random);
      const GemmEpilogue<float> e{2, 3, self.data(), 0, 1};
      const Check<float, float> check{m, n, k, a.data(), k, 1, b.data(), n, 1, e};
      auto c = before;
      kernels.stream(m, n, k, a.data(), k, 1, b.data(), n, e, c.data(), n);
      CHECK(check.wrong(before, c, n) == 0);
    }
  }
}

TEST_CASE("gemm: small floats are rounded to nearest, ties to even, NaN and infinity kept") {
  for (const GemmKernelSet* set : {&kGemmAvx2, &kGemmAvx512}) {
    if (set == &kGemmAvx512 && !has_avx512()) continue;
    const auto check = [&]<class S>() {
      const GemmKernels<S>& kernels = std::get<GemmKernels<S>>(*set);
      const std::vector<float> values{1 + 0x1p-9f, 1 + 0x1.8p-8f, 1 + 0x1.8p-7f, -1 - 0x1p-11f, 1e30f, 3e38f,
                                      NAN,         INFINITY,      -INFINITY,     0x1p-25f,      -0.0f, 65519,
                                      65520,       0x1p-14f,      0x1.8p-24f,    0x1p-130f};
      const auto n = static_cast<int64_t>(values.size());
      // k is 1, so row i of c is values[i] times 1.
      std::vector<S> panel(static_cast<size_t>(kernels.wide), S(1.0f)), c(static_cast<size_t>(n * kernels.wide));
      kernels.panel(n, 1, values.data(), 1, 1, panel.data(), kernels.wide, kernels.wide, {}, c.data(), kernels.wide);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < kernels.wide; ++j)
          CHECK(c[static_cast<size_t>(i * kernels.wide + j)].bits == S(values[static_cast<size_t>(i)] + 0.0f).bits);
    };
    check.template operator()<Half>();
    check.template operator()<BFloat16>();
  }
}
