#include "src/cpu/sorting/search_lanes.h"

#include <immintrin.h>

#include <bit>

namespace sconce {
namespace {

// Lanes of 32 bits.
struct Lanes32 {
  using Place = __m256i;
  static constexpr int kLanes = 8;
  static Place spread(int64_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
  static Place greater(Place a, Place b) { return _mm256_cmpgt_epi32(a, b); }
  static Place add(Place a, Place b) { return _mm256_add_epi32(a, b); }
  static Place middle(Place low, Place high) {
    return _mm256_add_epi32(low, _mm256_srli_epi32(_mm256_sub_epi32(high, low), 1));
  }
  static void store(int32_t* to, Place x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
};
struct Lanes64 {
  using Place = __m256i;
  static constexpr int kLanes = 4;
  static Place spread(int64_t x) { return _mm256_set1_epi64x(x); }
  static Place greater(Place a, Place b) { return _mm256_cmpgt_epi64(a, b); }
  static Place add(Place a, Place b) { return _mm256_add_epi64(a, b); }
  static Place middle(Place low, Place high) {
    return _mm256_add_epi64(low, _mm256_srli_epi64(_mm256_sub_epi64(high, low), 1));
  }
  static void store(int32_t* to, Place x) {
    const __m256i even = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(even));
  }
};

// Element: loads values, gathers elements at the active places, and tells in which lanes the place is further up.
template <class T>
struct Element;
template <>
struct Element<float> : Lanes32 {
  using Value = __m256;
  static Value load(const float* p) { return _mm256_loadu_ps(p); }
  static Value gather(const float* row, Place at, Place active) {
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), row, at, _mm256_castsi256_ps(active), 4);
  }
  template <bool Right>
  static Place up(Value element, Value value) {
    return _mm256_castps_si256(_mm256_cmp_ps(element, value, Right ? _CMP_NGT_UQ : _CMP_NGE_UQ));
  }
};
template <>
struct Element<double> : Lanes64 {
  using Value = __m256d;
  static Value load(const double* p) { return _mm256_loadu_pd(p); }
  static Value gather(const double* row, Place at, Place active) {
    return _mm256_mask_i64gather_pd(_mm256_setzero_pd(), row, at, _mm256_castsi256_pd(active), 8);
  }
  template <bool Right>
  static Place up(Value element, Value value) {
    return _mm256_castpd_si256(_mm256_cmp_pd(element, value, Right ? _CMP_NGT_UQ : _CMP_NGE_UQ));
  }
};
template <>
struct Element<int32_t> : Lanes32 {
  using Value = __m256i;
  static Value load(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Value gather(const int32_t* row, Place at, Place active) {
    return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), row, at, active, 4);
  }
  template <bool Right>
  static Place up(Value element, Value value) {
    return Right ? _mm256_xor_si256(greater(element, value), _mm256_set1_epi32(-1)) : greater(value, element);
  }
};
template <>
struct Element<int64_t> : Lanes64 {
  using Value = __m256i;
  static Value load(const int64_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Value gather(const int64_t* row, Place at, Place active) {
    return _mm256_mask_i64gather_epi64(_mm256_setzero_si256(), reinterpret_cast<const long long*>(row), at, active, 8);
  }
  template <bool Right>
  static Place up(Value element, Value value) {
    return Right ? _mm256_xor_si256(greater(element, value), _mm256_set1_epi32(-1)) : greater(value, element);
  }
};

// Groups searched side by side: their loads do not wait for one another.
constexpr int kGroups = 4;

template <bool Right, class T>
void search_groups(const T* row, int64_t n, const T* values, int32_t* places) noexcept {
  using E = Element<T>;
  typename E::Value value[kGroups];
  typename E::Place low[kGroups], high[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    value[g] = E::load(values + g * E::kLanes);
    low[g] = E::spread(0);
    high[g] = E::spread(n);
  }
  for (int step = std::bit_width(static_cast<uint64_t>(n)); step > 0; --step)
    for (int g = 0; g < kGroups; ++g) {
      const auto active = E::greater(high[g], low[g]);
      const auto middle = E::middle(low[g], high[g]);
      const auto up = E::template up<Right>(E::gather(row, middle, active), value[g]);
      const auto next = E::add(middle, E::spread(1));
      low[g] = _mm256_blendv_epi8(low[g], next, _mm256_and_si256(active, up));
      high[g] = _mm256_blendv_epi8(high[g], middle, _mm256_andnot_si256(up, active));
    }
  for (int g = 0; g < kGroups; ++g) E::store(places + g * E::kLanes, low[g]);
}

template <bool Right, class T>
void search_all(const T* row, int64_t n, const T* values, int64_t count, int32_t* places) noexcept {
  constexpr int kAtOnce = kGroups * Element<T>::kLanes;
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) search_groups<Right>(row, n, values + i, places + i);
  for (; i < count; ++i) places[i] = static_cast<int32_t>(search_value(row, nullptr, n, values[i], Right));
}

}  // namespace

#define SCONCE_SEARCH(T)                                                                                               \
  void search_values(const T* row, int64_t n, const T* values, int64_t count, bool right, int32_t* places) noexcept {  \
    return right ? search_all<true>(row, n, values, count, places) : search_all<false>(row, n, values, count, places); \
  }
SCONCE_SEARCH(float)
SCONCE_SEARCH(int32_t)
SCONCE_SEARCH(double)
SCONCE_SEARCH(int64_t)
#undef SCONCE_SEARCH

}  // namespace sconce
