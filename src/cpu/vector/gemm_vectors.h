// Vector registers of one instruction set, as gemm_tiles.h uses them. Included once per instruction set, inside its
// `#pragma GCC target`, with SCONCE_GEMM_AVX512 defined or not; everything is internal to that translation unit.
//
// Each type: T (element), W (elements), R (register), and static functions. *_n: only the first n elements, the rest
// reads as zero. load and store convert Half and BFloat16.

namespace sconce {
namespace {

#if defined(SCONCE_GEMM_AVX512)

struct VectorF32 {
  using T = float;
  using R = __m512;
  static constexpr int W = 16;
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static R zero() { return _mm512_setzero_ps(); }
  static R broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static R broadcast(float v) { return _mm512_set1_ps(v); }
  static R fma(R a, R b, R c) { return _mm512_fmadd_ps(a, b, c); }
  static R add(R a, R b) { return _mm512_add_ps(a, b); }
  static R load(const float* p) { return _mm512_loadu_ps(p); }
  static R load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float* p, R v) { _mm512_storeu_ps(p, v); }
  static void store_n(float* p, R v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static R widen_bfloat16(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
  static R load(const BFloat16* p) { return widen_bfloat16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static R load_n(const BFloat16* p, int64_t n) { return widen_bfloat16(_mm256_maskz_loadu_epi16(first(n), p)); }
  static R load(const Half* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static R load_n(const Half* p, int64_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p)); }
  static __m256i narrow_bfloat16(R v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    rounded = _mm512_srli_epi32(rounded, 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_set1_epi32(rounded, nan, 0x7FC0));
  }
  static void store(BFloat16* p, R v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bfloat16(v)); }
  static void store_n(BFloat16* p, R v, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow_bfloat16(v)); }
  static __m256i narrow_half(R v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
  static void store(Half* p, R v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_half(v)); }
  static void store_n(Half* p, R v, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow_half(v)); }
  // The sums of the elements of a, b, c and d.
  static void sum4(R a, R b, R c, R d, float* out) {
    const auto half = [](R v) { return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)); };
    const __m256 ab = _mm256_hadd_ps(half(a), half(b)), cd = _mm256_hadd_ps(half(c), half(d));
    const __m256 abcd = _mm256_hadd_ps(ab, cd);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
  }
  // (re, im) pairs: r + i * s, where r holds re*b and s holds im*b.
  static R swap_pairs(R v) { return _mm512_permute_ps(v, 0xB1); }
  static R complex_sum(R r, R s) { return _mm512_fmaddsub_ps(_mm512_set1_ps(1), r, swap_pairs(s)); }
};

struct VectorF64 {
  using T = double;
  using R = __m512d;
  static constexpr int W = 8;
  static __mmask8 first(int64_t n) { return static_cast<__mmask8>((1u << n) - 1); }
  static R zero() { return _mm512_setzero_pd(); }
  static R broadcast(const double* p) { return _mm512_set1_pd(*p); }
  static R broadcast(double v) { return _mm512_set1_pd(v); }
  static R fma(R a, R b, R c) { return _mm512_fmadd_pd(a, b, c); }
  static R add(R a, R b) { return _mm512_add_pd(a, b); }
  static R load(const double* p) { return _mm512_loadu_pd(p); }
  static R load_n(const double* p, int64_t n) { return _mm512_maskz_loadu_pd(first(n), p); }
  static void store(double* p, R v) { _mm512_storeu_pd(p, v); }
  static void store_n(double* p, R v, int64_t n) { _mm512_mask_storeu_pd(p, first(n), v); }
  static void sum4(R a, R b, R c, R d, double* out) {
    const auto half = [](R v) { return _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1)); };
    const __m256d ab = _mm256_hadd_pd(half(a), half(b)), cd = _mm256_hadd_pd(half(c), half(d));
    _mm256_storeu_pd(out, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
  }
  static R swap_pairs(R v) { return _mm512_permute_pd(v, 0x55); }
  static R complex_sum(R r, R s) { return _mm512_fmaddsub_pd(_mm512_set1_pd(1), r, swap_pairs(s)); }
};

#else

struct VectorF32 {
  using T = float;
  using R = __m256;
  static constexpr int W = 8;
  static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static R zero() { return _mm256_setzero_ps(); }
  static R broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static R broadcast(float v) { return _mm256_set1_ps(v); }
  static R fma(R a, R b, R c) { return _mm256_fmadd_ps(a, b, c); }
  static R add(R a, R b) { return _mm256_add_ps(a, b); }
  static R load(const float* p) { return _mm256_loadu_ps(p); }
  static R load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  static void store(float* p, R v) { _mm256_storeu_ps(p, v); }
  static void store_n(float* p, R v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }
  template <class S>
  static R load_n(const S* p, int64_t n) {
    S all[W] = {};
    __builtin_memcpy(all, p, static_cast<size_t>(n) * sizeof(S));
    return load(all);
  }
  template <class S>
  static void store_n(S* p, R v, int64_t n) {
    S all[W];
    store(all, v);
    __builtin_memcpy(p, all, static_cast<size_t>(n) * sizeof(S));
  }
  static R load(const BFloat16* p) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
  }
  static R load(const Half* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static void store(BFloat16* p, R v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    rounded = _mm256_srli_epi32(rounded, 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7FC0), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store(Half* p, R v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static void sum4(R a, R b, R c, R d, float* out) {
    const __m256 abcd = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
  }
  static R swap_pairs(R v) { return _mm256_permute_ps(v, 0xB1); }
  static R complex_sum(R r, R s) { return _mm256_addsub_ps(r, swap_pairs(s)); }
};

struct VectorF64 {
  using T = double;
  using R = __m256d;
  static constexpr int W = 4;
  static __m256i first(int64_t n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
  static R zero() { return _mm256_setzero_pd(); }
  static R broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  static R broadcast(double v) { return _mm256_set1_pd(v); }
  static R fma(R a, R b, R c) { return _mm256_fmadd_pd(a, b, c); }
  static R add(R a, R b) { return _mm256_add_pd(a, b); }
  static R load(const double* p) { return _mm256_loadu_pd(p); }
  static R load_n(const double* p, int64_t n) { return _mm256_maskload_pd(p, first(n)); }
  static void store(double* p, R v) { _mm256_storeu_pd(p, v); }
  static void store_n(double* p, R v, int64_t n) { _mm256_maskstore_pd(p, first(n), v); }
  static void sum4(R a, R b, R c, R d, double* out) {
    const __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
    _mm256_storeu_pd(out, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
  }
  static R swap_pairs(R v) { return _mm256_permute_pd(v, 0x5); }
  static R complex_sum(R r, R s) { return _mm256_addsub_pd(r, swap_pairs(s)); }
};

#endif

}  // namespace
}  // namespace sconce
