// The inner loops of convolution_bytes.h. Included once per instruction set, inside its `#pragma GCC target`, with
// SCONCE_BYTES_VNNI defined or not; everything is internal to that translation unit.

namespace sconce {
namespace {

#if defined(SCONCE_BYTES_VNNI)

struct ByteVectors {
  using I = __m512i;
  using F = __m512;
  using Item = uint8_t;
  static constexpr int W = 16, kVectors = 4, kQuad = 4;
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static I load(const void* p) { return _mm512_loadu_si512(p); }
  static void store(int32_t* p, I v) { _mm512_storeu_si512(p, v); }
  static I broadcast(const std::byte* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return _mm512_set1_epi32(quad);
  }
  static I dot(I sum, I x, I w) { return _mm512_dpbusd_epi32(sum, x, w); }
  static I widen(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  static F floats(I v) { return _mm512_cvtepi32_ps(v); }
  static F load_floats(const float* p) { return _mm512_loadu_ps(p); }
  static F set(float v) { return _mm512_set1_ps(v); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F subtract(F a, F b) { return _mm512_sub_ps(a, b); }
  static F multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  static F least(F a, F b) { return _mm512_min_ps(a, b); }  // b if one of them is NaN
  static F most(F a, F b) { return _mm512_max_ps(a, b); }
  static F old(const uint8_t* p, int64_t n) { return floats(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n), p))); }
  static F old(const int8_t* p, int64_t n) { return floats(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(n), p))); }
  static F old(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void put(float* p, F v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static void put(int32_t* p, I v, int64_t n) { _mm512_mask_storeu_epi32(p, first(n), v); }
  static void put_bytes(void* p, __m128i v, int64_t n) {
    if (n == W)
      _mm_storeu_si128(static_cast<__m128i*>(p), v);
    else
      _mm_mask_storeu_epi8(p, first(n), v);
  }
  // v is at most the largest value of the type.
  static void put(uint8_t* p, F v, int64_t n) {
    put_bytes(p, _mm512_cvtepi32_epi8(_mm512_max_epi32(_mm512_cvtps_epi32(v), _mm512_setzero_si512())), n);
  }
  static void put(int8_t* p, F v, int64_t n) { put_bytes(p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)), n); }
};

#else

struct ByteVectors {
  using I = __m256i;
  using F = __m256;
  using Item = int16_t;
  static constexpr int W = 8, kVectors = 2, kQuad = 2;
  static I load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store(int32_t* p, I v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static I broadcast(const std::byte* p) {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return _mm256_set1_epi32(pair);
  }
  // Products of bytes in pairs would saturate.
  static I dot(I sum, I x, I w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }
  static I widen(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }

  static F floats(I v) { return _mm256_cvtepi32_ps(v); }
  static F load_floats(const float* p) { return _mm256_loadu_ps(p); }
  static F set(float v) { return _mm256_set1_ps(v); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F subtract(F a, F b) { return _mm256_sub_ps(a, b); }
  static F multiply(F a, F b) { return _mm256_mul_ps(a, b); }
  static F least(F a, F b) { return _mm256_min_ps(a, b); }  // b where one is NaN
  static F most(F a, F b) { return _mm256_max_ps(a, b); }
  template <class T>
  static F old(const T* p, int64_t n) {
    alignas(32) float values[W] = {};
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(p[i]);
    return _mm256_load_ps(values);
  }
  static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static void put(float* p, F v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }
  static void put(int32_t* p, I v, int64_t n) { _mm256_maskstore_epi32(p, first(n), v); }
  static void put_bytes(void* p, __m128i v, int64_t n) {
    const int64_t bytes = _mm_cvtsi128_si64(v);
    if (n == W)
      std::memcpy(p, &bytes, W);
    else
      std::memcpy(p, &bytes, static_cast<size_t>(n));
  }
  // v is at most the largest value of the type.
  static __m128i halves(F v) {
    const __m256i i = _mm256_cvtps_epi32(v);
    return _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
  }
  static void put(uint8_t* p, F v, int64_t n) { put_bytes(p, _mm_packus_epi16(halves(v), _mm_setzero_si128()), n); }
  static void put(int8_t* p, F v, int64_t n) { put_bytes(p, _mm_packs_epi16(halves(v), _mm_setzero_si128()), n); }
};

#endif

template <class To, bool Old>
void finish_bytes(const ByteOutput& o, const int32_t* sums, int64_t pitch, int64_t pixels) {
  using V = ByteVectors;
  const ByteFinish& f = *o.finish;
  const V::F low = V::set(f.low), high = V::set(f.high), inverse = V::set(f.inverse), zero = V::set(f.zero);
  const V::F most = V::set(static_cast<float>(std::numeric_limits<To>::max()));
  const V::F old_zero = V::set(f.old_zero), old_scale = V::set(f.old_scale);
  for (int64_t lane = 0; lane < o.lanes; lane += V::W) {
    const int64_t n = std::min<int64_t>(V::W, o.lanes - lane);
    const V::F scale = V::load_floats(o.scale + lane), bias = V::load_floats(o.bias + lane);
    for (int64_t p = 0; p < pixels; ++p) {
      To* to = reinterpret_cast<To*>(o.to + p * o.pitch) + lane;
      V::F v = V::add(V::multiply(V::floats(V::load(sums + p * pitch + lane)), scale), bias);
      if constexpr (Old) v = V::add(v, V::multiply(V::subtract(V::old(to, n), old_zero), old_scale));
      v = V::least(high, V::most(low, v));
      if constexpr (!std::is_same_v<To, float>) v = V::least(most, V::add(V::multiply(v, inverse), zero));
      V::put(to, v, n);
    }
  }
}

void write_sums(const ByteOutput& o, const int32_t* sums, int64_t pitch, int64_t pixels) {
  using V = ByteVectors;
  for (int64_t lane = 0; lane < o.lanes; lane += V::W)
    for (int64_t p = 0; p < pixels; ++p)
      V::put(reinterpret_cast<int32_t*>(o.to + p * o.pitch) + lane, V::load(sums + p * pitch + lane),
             std::min<int64_t>(V::W, o.lanes - lane));
}

void finish_pixels(const ByteOutput& o, const int32_t* sums, int64_t pitch, int64_t pixels) {
  if (!o.finish) return write_sums(o, sums, pitch, pixels);
  const bool old = o.finish->add_old;
  if (o.dtype == DType::kUInt8)
    return old ? finish_bytes<uint8_t, true>(o, sums, pitch, pixels)
               : finish_bytes<uint8_t, false>(o, sums, pitch, pixels);
  if (o.dtype == DType::kInt8)
    return old ? finish_bytes<int8_t, true>(o, sums, pitch, pixels)
               : finish_bytes<int8_t, false>(o, sums, pitch, pixels);
  return old ? finish_bytes<float, true>(o, sums, pitch, pixels) : finish_bytes<float, false>(o, sums, pitch, pixels);
}

// The sums of P pixels, a vector each.
template <int P>
inline void finish_vectors(const ByteOutput& o, const ByteVectors::I (&sum)[P]) {
  using V = ByteVectors;
  alignas(64) int32_t sums[P * V::W];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) V::store(sums + p * V::W, sum[p]);
  finish_pixels(o, sums, V::W, P);
}

template <int P, int N>
void byte_tile(const ByteTile& t) noexcept {
  using V = ByteVectors;
  V::I sum[P][N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) {
    const V::I start = V::load(t.output.start + v * V::W);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p][v] = start;
  }
  const std::byte* weight = t.weight;
  const int64_t pitch = t.weight_pitch;
  constexpr int64_t kStep = V::kQuad * static_cast<int64_t>(sizeof(V::Item));
  for (int64_t r = 0; r < t.run_count; ++r) {
    const int64_t begin = t.runs[r].input * static_cast<int64_t>(sizeof(V::Item));
    const int64_t end = begin + t.runs[r].quads * kStep;
    for (int64_t at = begin; at < end; at += kStep) {
      V::I w[N];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) w[v] = V::load(weight + v * pitch);
      weight += V::W * kStep;
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const V::I x = V::broadcast(t.pixels[p] + at);
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sum[p][v] = V::dot(sum[p][v], x, w[v]);
      }
    }
  }
  alignas(64) int32_t sums[P * N * V::W];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) V::store(sums + (p * N + v) * V::W, sum[p][v]);
  finish_pixels(t.output, sums, N * V::W, P);
}

void run_byte_tile(const ByteTile& tile, int pixels, int vectors) noexcept {
  static constexpr auto kAll = []<size_t... I>(std::index_sequence<I...>) {
    return std::array{&byte_tile<static_cast<int>(I) / ByteVectors::kVectors + 1,
                                 static_cast<int>(I) % ByteVectors::kVectors + 1>...};
  }
  (std::make_index_sequence<kBytePixels * ByteVectors::kVectors>());
  kAll[static_cast<size_t>((pixels - 1) * ByteVectors::kVectors + vectors - 1)](tile);
}

// P pixels with K taps a row, S columns apart: every input is loaded once and used by all pixels that it reaches.
template <int K, int S, int P>
inline void sliding_bytes(const ByteDepthwiseRow& r) {
  using V = ByteVectors;
  V::I sum[P];
  const V::I start = V::load(r.output.start);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p] = start;
  const int32_t* w = r.weight;
  for (int64_t row = 0; row < r.rows; ++row, w += K * V::W) {
    const uint8_t* x = r.input + r.runs[row].input;
    V::I ws[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) ws[k] = V::load(w + k * V::W);
    const auto column = [&]<int J>() {
      const V::I xs = V::widen(x + J * r.column);
      [&]<size_t... T>(std::index_sequence<T...>) {
        (
            [&] {
              constexpr int k = static_cast<int>(T), p = (J - k) / S;
              if constexpr (J >= k && (J - k) % S == 0 && p < P) sum[p] = V::dot(sum[p], xs, ws[k]);
            }(),
            ...);
      }
      (std::make_index_sequence<K>());
    };
    [&]<size_t... J>(std::index_sequence<J...>) { (column.template operator()<static_cast<int>(J)>(), ...); }
    (std::make_index_sequence<(P - 1) * S + K>());
  }
  finish_vectors(r.output, sum);
}

template <int P>
inline void any_bytes(const ByteDepthwiseRow& r) {
  using V = ByteVectors;
  V::I sum[P];
  const V::I start = V::load(r.output.start);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p] = start;
  const int32_t* w = r.weight;
  for (int64_t row = 0; row < r.rows; ++row)
    for (int64_t k = 0; k < r.taps; ++k, w += V::W) {
      const uint8_t* x = r.input + r.runs[row].input + k * r.dilation * r.column;
      const V::I ws = V::load(w);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sum[p] = V::dot(sum[p], V::widen(x + p * r.step * r.column), ws);
    }
  finish_vectors(r.output, sum);
}

inline void advance(ByteDepthwiseRow& r, int64_t pixels) {
  r.input += pixels * r.step * r.column;
  r.output.to += pixels * r.output.pitch;
}

template <int K, int S>
void sliding_byte_row(ByteDepthwiseRow r, int64_t pixels) {
  const auto some = [&]<int P>() {
    sliding_bytes<K, S, P>(r);
    advance(r, P);
    pixels -= P;
  };
  while (pixels >= 8) some.template operator()<8>();
  if (pixels >= 4) some.template operator()<4>();
  if (pixels >= 2) some.template operator()<2>();
  if (pixels >= 1) some.template operator()<1>();
}

void run_byte_row(const ByteDepthwiseRow& row, int64_t pixels) noexcept {
  if (row.dilation == 1 && row.step <= 2) {
    switch (row.taps * 2 + row.step) {
      case 7:
        return sliding_byte_row<3, 1>(row, pixels);
      case 8:
        return sliding_byte_row<3, 2>(row, pixels);
      case 11:
        return sliding_byte_row<5, 1>(row, pixels);
      case 12:
        return sliding_byte_row<5, 2>(row, pixels);
      default:
        break;
    }
  }
  ByteDepthwiseRow r = row;
  for (; pixels >= 8; pixels -= 8) {
    any_bytes<8>(r);
    advance(r, 8);
  }
  for (; pixels >= 2; pixels -= 2) {
    any_bytes<2>(r);
    advance(r, 2);
  }
  if (pixels > 0) any_bytes<1>(r);
}

constexpr ByteTiles make_byte_tiles() {
  using V = ByteVectors;
  return {V::W, V::kVectors, V::kQuad, sizeof(V::Item), run_byte_tile, run_byte_row};
}

}  // namespace
}  // namespace sconce
