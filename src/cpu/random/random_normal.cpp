// Box-Muller as ATen's AVX2 normal_fill computes it. For float the logarithm, sine and cosine are Cephes' single
// precision polynomials, and every product that feeds a sum is fused, so that the results are equal to the bit.
#include <immintrin.h>

#include <cmath>

#include "src/cpu/random/random.h"

namespace sconce::random_detail {
namespace {

__m256 splat(float value) { return _mm256_set1_ps(value); }
__m256i splat(int value) { return _mm256_set1_epi32(value); }

// ln(x) for x in (0, 1]; NaN for x <= 0.
__m256 log_cephes(__m256 x) {
  const __m256 invalid = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LE_OS);
  x = _mm256_max_ps(x, splat(0x1p-126f));
  const __m256i exponent = _mm256_sub_epi32(_mm256_srli_epi32(_mm256_castps_si256(x), 23), splat(127));
  __m256 e = _mm256_add_ps(_mm256_cvtepi32_ps(exponent), splat(1.0f));
  // m in [0.5, 1), then shifted to [sqrt(0.5) - 1, sqrt(2) - 1).
  const __m256 mantissa_bits = _mm256_castsi256_ps(splat(static_cast<int>(~0x7f800000u)));
  const __m256 m = _mm256_or_ps(_mm256_and_ps(x, mantissa_bits), splat(0.5f));
  const __m256 low = _mm256_cmp_ps(m, splat(0.707106781186547524f), _CMP_LT_OS);
  e = _mm256_sub_ps(e, _mm256_and_ps(splat(1.0f), low));
  const __m256 f = _mm256_add_ps(_mm256_sub_ps(m, splat(1.0f)), _mm256_and_ps(m, low));

  __m256 y = splat(7.0376836292E-2f);
  for (float c : {-1.1514610310E-1f, 1.1676998740E-1f, -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f,
                  2.0000714765E-1f, -2.4999993993E-1f, 3.3333331174E-1f})
    y = _mm256_fmadd_ps(y, f, splat(c));
  const __m256 f2 = _mm256_mul_ps(f, f);
  y = _mm256_fmadd_ps(_mm256_mul_ps(y, f), f2, _mm256_mul_ps(e, splat(-2.12194440e-4f)));
  y = _mm256_fnmadd_ps(f2, splat(0.5f), y);
  return _mm256_or_ps(_mm256_fmadd_ps(e, splat(0.693359375f), _mm256_add_ps(f, y)), invalid);
}

// sin and cos of x >= 0.
void sincos_cephes(__m256 x, __m256& sine, __m256& cosine) {
  __m256i octant = _mm256_cvttps_epi32(_mm256_mul_ps(x, splat(1.27323954473516f)));
  octant = _mm256_and_si256(_mm256_add_epi32(octant, splat(1)), splat(~1));
  const __m256 turns = _mm256_cvtepi32_ps(octant);
  const __m256 sine_sign = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(octant, splat(4)), 29));
  const __m256 cosine_sign =
      _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_andnot_si256(_mm256_sub_epi32(octant, splat(2)), splat(4)), 29));
  const __m256 straight =
      _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(octant, splat(2)), _mm256_setzero_si256()));
  // x - turns * pi/4, with pi/4 in three pieces.
  for (float piece : {-0.78515625f, -2.4187564849853515625e-4f, -3.77489497744594108e-8f})
    x = _mm256_fmadd_ps(turns, splat(piece), x);

  const __m256 z = _mm256_mul_ps(x, x);
  __m256 c = splat(2.443315711809948E-005f);
  c = _mm256_fmadd_ps(c, z, splat(-1.388731625493765E-003f));
  c = _mm256_fmadd_ps(c, z, splat(4.166664568298827E-002f));
  c = _mm256_fmsub_ps(z, _mm256_mul_ps(c, z), _mm256_mul_ps(z, splat(0.5f)));
  c = _mm256_add_ps(c, splat(1.0f));
  __m256 s = splat(-1.9515295891E-4f);
  s = _mm256_fmadd_ps(s, z, splat(8.3321608736E-3f));
  s = _mm256_fmadd_ps(s, z, splat(-1.6666654611E-1f));
  s = _mm256_fmadd_ps(x, _mm256_mul_ps(s, z), x);

  sine = _mm256_xor_ps(_mm256_blendv_ps(c, s, straight), sine_sign);
  cosine = _mm256_xor_ps(_mm256_blendv_ps(s, c, straight), cosine_sign);
}

}  // namespace

void box_muller_16(float* u, float mean, float std) noexcept {
  const __m256 u1 = _mm256_sub_ps(splat(1.0f), _mm256_loadu_ps(u));
  const __m256 radius = _mm256_sqrt_ps(_mm256_mul_ps(splat(-2.0f), log_cephes(u1)));
  const __m256 theta = _mm256_mul_ps(splat(static_cast<float>(2.0 * M_PI)), _mm256_loadu_ps(u + 8));
  __m256 sine, cosine;
  sincos_cephes(theta, sine, cosine);
  _mm256_storeu_ps(u, _mm256_fmadd_ps(_mm256_mul_ps(radius, cosine), splat(std), splat(mean)));
  _mm256_storeu_ps(u + 8, _mm256_fmadd_ps(_mm256_mul_ps(radius, sine), splat(std), splat(mean)));
}

void box_muller_16(double* u, double mean, double std) noexcept {
  for (int i = 0; i < 8; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - u[i]));
    const double theta = 2.0 * M_PI * u[i + 8];
    u[i] = std::fma(radius * std::cos(theta), std, mean);
    u[i + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}

}  // namespace sconce::random_detail
