// The loops of attention_softmax.h over the vectors of gemm_vectors.h. Included once per instruction set, after
// gemm_vectors.h; everything is internal to that translation unit.

namespace sconce {
namespace {

// exp(x) for x <= 0 and NaN: 2^n * e^r with |r| <= ln(2) / 2, e^r by its series; 0 below the smallest normal number.
// float: relative error below 2^-22.
struct ExpF32 : VectorF32 {
  static constexpr float kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kSeries[] = {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 1.f / 2, 1.f, 1.f};
  static constexpr float kLowest = -87.3f;
};
// double: relative error below 2^-51.
struct ExpF64 : VectorF64 {
  static constexpr double kLog2e = 1.4426950408889634, kLn2High = 0.6931471803691238, kLn2Low = 1.9082149292705877e-10;
  static constexpr double kSeries[] = {
      1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040,
      1. / 720,        1. / 120,       1. / 24,       1. / 6,       1. / 2,      1.,         1.};
  static constexpr double kLowest = -708.3;
};

#if defined(SCONCE_GEMM_AVX512)
inline __m512 maximum(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
inline __m512d maximum(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
inline __m512 subtract(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
inline __m512d subtract(__m512d a, __m512d b) { return _mm512_sub_pd(a, b); }
inline __m512 multiply(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
inline __m512d multiply(__m512d a, __m512d b) { return _mm512_mul_pd(a, b); }
inline __m512 nearest(__m512 v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline __m512d nearest(__m512d v) { return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline __m512 times_power(__m512 v, __m512 n) { return _mm512_scalef_ps(v, n); }
inline __m512d times_power(__m512d v, __m512d n) { return _mm512_scalef_pd(v, n); }
// v, or 0 if x is below the limit.
inline __m512 zero_below(__m512 v, __m512 x, __m512 limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), v);
}
inline __m512d zero_below(__m512d v, __m512d x, __m512d limit) {
  return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, limit, _CMP_NLT_UQ), v);
}
inline float sum_of(__m512 v) { return _mm512_reduce_add_ps(v); }
inline double sum_of(__m512d v) { return _mm512_reduce_add_pd(v); }
inline float maximum_of(__m512 v) { return _mm512_reduce_max_ps(v); }
inline double maximum_of(__m512d v) { return _mm512_reduce_max_pd(v); }
#else
inline __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline __m256d maximum(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
inline __m256 subtract(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
inline __m256d subtract(__m256d a, __m256d b) { return _mm256_sub_pd(a, b); }
inline __m256 multiply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
inline __m256d multiply(__m256d a, __m256d b) { return _mm256_mul_pd(a, b); }
inline __m256 nearest(__m256 v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline __m256d nearest(__m256d v) { return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline __m256 times_power(__m256 v, __m256 n) {
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), bits));
}
inline __m256d times_power(__m256d v, __m256d n) {
  const __m256i bits = _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n)), 52);
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(v), bits));
}
inline __m256 zero_below(__m256 v, __m256 x, __m256 limit) {
  return _mm256_and_ps(v, _mm256_cmp_ps(x, limit, _CMP_NLT_UQ));
}
inline __m256d zero_below(__m256d v, __m256d x, __m256d limit) {
  return _mm256_and_pd(v, _mm256_cmp_pd(x, limit, _CMP_NLT_UQ));
}
inline float sum_of(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline double sum_of(__m256d v) {
  const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}
inline float maximum_of(__m256 v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
inline double maximum_of(__m256d v) {
  const __m128d s = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_max_sd(s, _mm_unpackhi_pd(s, s)));
}
#endif

template <class V>
typename V::R exp_negative(typename V::R x) {
  const auto lowest = V::broadcast(V::kLowest);
  // If one operand is NaN, the instruction returns the second one.
  const auto at = maximum(lowest, x);
  const auto n = nearest(multiply(at, V::broadcast(V::kLog2e)));
  auto r = V::fma(n, V::broadcast(-V::kLn2High), at);
  r = V::fma(n, V::broadcast(-V::kLn2Low), r);
  auto y = V::broadcast(V::kSeries[0]);
  constexpr int kTerms = static_cast<int>(std::size(V::kSeries));
#pragma GCC unroll 16
  for (int i = 1; i < kTerms; ++i) y = V::fma(y, r, V::broadcast(V::kSeries[i]));
  return zero_below(times_power(y, n), x, lowest);
}

// Adds the mask, if there is one, and returns the largest score that is not NaN.
template <class V, class T>
T masked_maximum(T* scores, const T* mask, int64_t n) {
  const auto lowest = V::broadcast(-std::numeric_limits<T>::infinity());
  auto most = lowest;
  int64_t j = 0;
  for (; j + V::W <= n; j += V::W) {
    auto v = V::load(scores + j);
    if (mask) {
      v = V::add(v, V::load(mask + j));
      V::store(scores + j, v);
    }
    most = maximum(v, most);
  }
  T result = maximum_of(most);
  for (; j < n; ++j) {
    if (mask) scores[j] += mask[j];
    if (scores[j] > result) result = scores[j];
  }
  return result;
}

template <class V, class T>
T exp_row(T* scores, T maximum_of_row, int64_t n) {
  const auto most = V::broadcast(maximum_of_row);
  auto sum = V::zero();
  int64_t j = 0;
  for (; j + V::W <= n; j += V::W) {
    const auto v = exp_negative<V>(subtract(V::load(scores + j), most));
    V::store(scores + j, v);
    sum = V::add(sum, v);
  }
  T result = sum_of(sum);
  if (j < n) {
    T weights[V::W];
    V::store(weights, exp_negative<V>(subtract(V::load_n(scores + j, n - j), most)));
    for (int64_t i = 0; j < n; ++i, ++j) {
      scores[j] = weights[i];
      result += weights[i];
    }
  }
  return result;
}

template <class V, class T>
void softmax_block(const SoftmaxBlock<T>& b) noexcept {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < b.rows; ++i) {
    T* const scores = b.scores + i * b.stride;
    int64_t n = b.visible + i < b.columns ? b.visible + i : b.columns;
    if (n < 0) n = 0;
    const T before = b.maximum[i];
    T most = masked_maximum<V, T>(scores, b.mask ? b.mask + i * b.mask_stride : nullptr, n);
    if (!(most > before)) most = before;
    T correction = 1;
    if (most == kLowest) {
      bool nan = false;
      for (int64_t j = 0; j < n; ++j) {
        nan |= scores[j] != scores[j];
        scores[j] = scores[j] != scores[j] ? scores[j] : T{0};
      }
      if (nan) b.sum[i] = std::numeric_limits<T>::quiet_NaN();
    } else {
      const T sum = exp_row<V, T>(scores, most, n);
      if (before == kLowest) {
        correction = 0;
      } else if (before != most) {
        T start[V::W];
        V::store(start, exp_negative<V>(V::broadcast(before - most)));
        correction = start[0];
      }
      b.sum[i] = b.sum[i] * correction + sum;
      b.maximum[i] = most;
    }
    b.correction[i] = correction;
    for (int64_t j = n; j < b.padded; ++j) scores[j] = 0;
  }
}

template <class V, class T>
void scale_row(const T* from, T factor, T* to, int64_t n) noexcept {
  const auto f = V::broadcast(factor);
  int64_t j = 0;
  for (; j + V::W <= n; j += V::W) V::store(to + j, multiply(V::load(from + j), f));
  for (; j < n; ++j) to[j] = from[j] * factor;
}

template <class S>
void score_few(int64_t rows, int64_t columns, int64_t depth, const float* query, const S* keys, int64_t stride,
               float* scores, int64_t score_stride) noexcept {
  using V = VectorF32;
  for (int64_t j = 0; j < columns; j += 4) {
    const int64_t count = columns - j < 4 ? columns - j : 4;
    const S* key[4];
    for (int64_t q = 0; q < 4; ++q) key[q] = keys + (j + (q < count ? q : 0)) * stride;
    for (int64_t i = 0; i < rows; ++i) {
      V::R sum[4] = {V::zero(), V::zero(), V::zero(), V::zero()},
           more[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
      const float* const row = query + i * depth;
      int64_t p = 0;
      for (; p + 2 * V::W <= depth; p += 2 * V::W) {
        const V::R a = V::load(row + p), b = V::load(row + p + V::W);
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
          sum[q] = V::fma(a, V::load(key[q] + p), sum[q]);
          more[q] = V::fma(b, V::load(key[q] + p + V::W), more[q]);
        }
      }
      for (; p < depth; p += V::W) {
        const int64_t n = depth - p < V::W ? depth - p : V::W;
        const V::R a = V::load_n(row + p, n);
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) sum[q] = V::fma(a, V::load_n(key[q] + p, n), sum[q]);
      }
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) sum[q] = V::add(sum[q], more[q]);
      float made[4];
      V::sum4(sum[0], sum[1], sum[2], sum[3], made);
      for (int64_t q = 0; q < count; ++q) scores[i * score_stride + j + q] = made[q];
    }
  }
}

// Count vectors of a row.
template <int Count, class S>
void weigh_columns(int64_t columns, const float* weights, const S* values, int64_t stride, float* sums) noexcept {
  using V = VectorF32;
  V::R sum[Count];
#pragma GCC unroll 8
  for (int q = 0; q < Count; ++q) sum[q] = V::load(sums + q * V::W);
  for (int64_t j = 0; j < columns; ++j, values += stride) {
    const V::R weight = V::broadcast(weights + j);
#pragma GCC unroll 8
    for (int q = 0; q < Count; ++q) sum[q] = V::fma(weight, V::load(values + q * V::W), sum[q]);
  }
#pragma GCC unroll 8
  for (int q = 0; q < Count; ++q) V::store(sums + q * V::W, sum[q]);
}
template <class S>
void weigh_few(int64_t rows, int64_t columns, int64_t depth, const float* weights, int64_t weight_stride,
               const S* values, int64_t stride, float* sums, int64_t sum_stride) noexcept {
  using V = VectorF32;
  for (int64_t i = 0; i < rows; ++i, weights += weight_stride, sums += sum_stride) {
    int64_t d = 0;
    for (; d + 8 * V::W <= depth; d += 8 * V::W) weigh_columns<8>(columns, weights, values + d, stride, sums + d);
    for (; d + 4 * V::W <= depth; d += 4 * V::W) weigh_columns<4>(columns, weights, values + d, stride, sums + d);
    for (; d + V::W <= depth; d += V::W) weigh_columns<1>(columns, weights, values + d, stride, sums + d);
    if (d == depth) continue;
    V::R sum = V::load_n(sums + d, depth - d);
    for (int64_t j = 0; j < columns; ++j)
      sum = V::fma(V::broadcast(weights + j), V::load_n(values + j * stride + d, depth - d), sum);
    V::store_n(sums + d, sum, depth - d);
  }
}

}  // namespace
}  // namespace sconce
