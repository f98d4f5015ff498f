// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "src/cpu/vector/double_logarithms.h"

#include <immintrin.h>

namespace sconce {
namespace {

// x = 2^k m, m from 3/4 to 3/2. The highest four bits of m's fraction choose c, near 1 / m, so that m c = 1 + r with a
// small r, and -log(c) in two parts: multiples of 2^-42 and the rest. Next to 1, c is 1 and r is exact.
alignas(64) constexpr double kInverse[16] = {0x1.0p+0,   0x1.d4p-1,  0x1.bbp-1,  0x1.a4p-1, 0x1.9p-1,  0x1.7dp-1,
                                             0x1.6cp-1,  0x1.5dp-1,  0x1.4e8p0,  0x1.418p0, 0x1.35p+0, 0x1.2ap+0,
                                             0x1.1f8p+0, 0x1.158p+0, 0x1.0c8p+0, 0x1.0p+0};
alignas(64) constexpr double kHigh[16] = {
    0x0.0p+0,           0x1.700d30aeacp-4,  0x1.28753bc11ap-3,  0x1.95a5adcf7p-3,
    0x1.f991c6cb3cp-3,  0x1.2e9e2bce12p-2,  0x1.5d5bddf596p-2,  0x1.8873658328p-2,
    -0x1.11e0e2dadap-2, -0x1.d293581b6cp-3, -0x1.815c0a1436p-3, -0x1.371fc201e8p-3,
    -0x1.db5270187cp-4, -0x1.4a50d3aa1cp-4, -0x1.868a83084p-5,  0x0.0p+0};
alignas(64) constexpr double kLow[16] = {0x0.0p+0,
                                         0x1.c1e8da99ded32p-49,
                                         0x1.7494e359302e6p-44,
                                         0x1.7f22858a0ff6fp-47,
                                         -0x1.90d04cd7cc834p-44,
                                         0x1.4300c128d1dc2p-45,
                                         -0x1.a0b2a08a465dcp-47,
                                         -0x1.988e21f7fc497p-45,
                                         0x1.a47f88fcce5bap-45,
                                         0x1.83270128aaa5fp-44,
                                         0x1.02a52f9201ce8p-44,
                                         -0x1.ee8779b2d8abcp-44,
                                         -0x1.9277856ae181fp-44,
                                         0x1.f7fe1308973e2p-45,
                                         0x1.2623a134ac693p-46,
                                         0x0.0p+0};
// (log(1 + r) - r + r^2 / 2) / r^3, from the highest power down; r from -0.0335 to 0.0626.
constexpr double kBend[9] = {0x1.451c2280efb85p-4,  -0x1.9840600237699p-4, 0x1.c7342205b280cp-4,
                             -0x1.00009a48068a9p-3, 0x1.249247b882019p-3,  -0x1.5555553341010p-3,
                             0x1.9999999994a02p-3,  -0x1.00000000011f2p-2, 0x1.555555555555ep-2};

// The logarithm of 2, whose first part times k is exact, and what natural logarithms are multiplied by.
struct Constants {
  double two_high, two_low, factor, factor_low;
};
constexpr Constants kConstants[] = {
    {0x1.62e42fefa38p-1, 0x1.ef35793c76730p-45, 1, 0},
    {1, 0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56},
    {0x1.34413509f8p-2, -0x1.80433b83b532ap-44, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57},
};

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

template <LogBase Base>
void logarithm_rows(int64_t count, const double* from, double* to) noexcept {
  constexpr Constants kOf = kConstants[static_cast<int>(Base)];
  const __m512d inverse[2] = {_mm512_load_pd(kInverse), _mm512_load_pd(kInverse + 8)};
  const __m512d high[2] = {_mm512_load_pd(kHigh), _mm512_load_pd(kHigh + 8)};
  const __m512d low[2] = {_mm512_load_pd(kLow), _mm512_load_pd(kLow + 8)};
  for (int64_t i = 0; i < count; i += 8) {
    const __mmask8 first = count - i >= 8 ? 0xFF : static_cast<__mmask8>((1 << (count - i)) - 1);
    const __m512d x = _mm512_maskz_loadu_pd(first, from + i);
    const __m512d k = _mm512_getexp_pd(_mm512_mul_pd(x, _mm512_set1_pd(1 / 0.75)));
    const __m512d m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    const __m512i at = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const __m512d r = _mm512_fmsub_pd(m, _mm512_permutex2var_pd(inverse[0], at, inverse[1]), _mm512_set1_pd(1));
    const __m512d h = _mm512_permutex2var_pd(high[0], at, high[1]), l = _mm512_permutex2var_pd(low[0], at, low[1]);
    __m512d p = _mm512_set1_pd(kBend[0]);
#pragma GCC unroll 8
    for (int j = 1; j < 9; ++j) p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(kBend[j]));
    const __m512d bend = _mm512_mul_pd(_mm512_mul_pd(r, r), _mm512_fmadd_pd(p, r, _mm512_set1_pd(-0.5)));
    // A large and a small part; what their sum loses joins the rest.
    __m512d large, small, rest;
    if constexpr (Base == LogBase::kE) {
      large = _mm512_fmadd_pd(k, _mm512_set1_pd(kOf.two_high), h);  // exact
      small = r;
      rest = _mm512_add_pd(_mm512_fmadd_pd(k, _mm512_set1_pd(kOf.two_low), l), bend);
    } else {
      const __m512d factor = _mm512_set1_pd(kOf.factor);
      const __m512d sum = _mm512_add_pd(h, r), lost = _mm512_add_pd(_mm512_sub_pd(h, sum), r);
      small = _mm512_mul_pd(sum, factor);
      rest = _mm512_fmadd_pd(sum, _mm512_set1_pd(kOf.factor_low), _mm512_fmsub_pd(sum, factor, small));
      rest = _mm512_fmadd_pd(_mm512_add_pd(_mm512_add_pd(lost, l), bend), factor, rest);
      rest = _mm512_fmadd_pd(k, _mm512_set1_pd(kOf.two_low), rest);
      large = _mm512_mul_pd(k, _mm512_set1_pd(kOf.two_high));  // exact
    }
    const __m512d sum = _mm512_add_pd(large, small), lost = _mm512_add_pd(_mm512_sub_pd(large, sum), small);
    _mm512_mask_storeu_pd(to + i, first, _mm512_add_pd(sum, _mm512_add_pd(lost, rest)));
  }
}

#pragma GCC pop_options

}  // namespace

void double_logarithms(LogBase base, int64_t count, const double* from, double* to) noexcept {
  switch (base) {
    case LogBase::kE:
      return logarithm_rows<LogBase::kE>(count, from, to);
    case LogBase::kTwo:
      return logarithm_rows<LogBase::kTwo>(count, from, to);
    case LogBase::kTen:
      return logarithm_rows<LogBase::kTen>(count, from, to);
  }
}

}  // namespace sconce
