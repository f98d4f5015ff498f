// The inner loop of convolution_depthwise.h over the vectors of gemm_vectors.h. Included once per instruction set,
// after gemm_vectors.h; everything is internal to that translation unit.

namespace sconce {
namespace {

#if defined(SCONCE_GEMM_AVX512)
// Returns the second operand if one of them is NaN.
inline __m512 channel_max(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
#else
inline __m256 channel_max(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
#endif

template <int P>
inline void start_pixels(const DepthwiseRow& r, VectorF32::R (&sum)[P]) {
  using V = VectorF32;
  const V::R start = r.bias ? V::load(r.bias) : V::zero();
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p] = start;
  if (!r.accumulate) return;
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const float* from = r.output + p * r.output_pixel;
    sum[p] = V::add(sum[p], r.lanes == V::W ? V::load(from) : V::load_n(from, r.lanes));
  }
}

template <int P>
inline void store_pixels(const DepthwiseRow& r, VectorF32::R (&sum)[P]) {
  using V = VectorF32;
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    if (r.relu) sum[p] = channel_max(V::zero(), sum[p]);
    if (r.lanes == V::W)
      V::store(r.output + p * r.output_pixel, sum[p]);
    else
      V::store_n(r.output + p * r.output_pixel, sum[p], r.lanes);
  }
}

// P pixels with K taps per row, S columns apart: every input is loaded once and used by all pixels that depend on it.
template <int K, int S, int P, bool Tail>
inline void sliding_pixels(const DepthwiseRow& r) {
  using V = VectorF32;
  V::R sum[P];
  start_pixels<P>(r, sum);
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* x = r.input + r.row_input[row];
    const float* w = r.row_weight[row];
    V::R ws[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) ws[k] = V::load(w + k * r.weight_pitch);
    const auto column = [&]<int J>() {
      const float* at = x + J * r.column;
      const V::R xs = Tail ? V::load_n(at, r.lanes) : V::load(at);
      [&]<size_t... T>(std::index_sequence<T...>) {
        (
            [&] {
              constexpr int k = static_cast<int>(T), p = (J - k) / S;
              if constexpr (J >= k && (J - k) % S == 0 && p < P) sum[p] = V::fma(xs, ws[k], sum[p]);
            }(),
            ...);
      }
      (std::make_index_sequence<K>());
    };
    [&]<size_t... J>(std::index_sequence<J...>) { (column.template operator()<static_cast<int>(J)>(), ...); }
    (std::make_index_sequence<(P - 1) * S + K>());
  }
  store_pixels<P>(r, sum);
}

template <int P>
inline void any_pixels(const DepthwiseRow& r, int64_t first, int64_t last) {
  using V = VectorF32;
  V::R sum[P];
  start_pixels<P>(r, sum);
  for (int64_t row = 0; row < r.rows; ++row)
    for (int64_t k = first; k < last; ++k) {
      const float* x = r.input + r.row_input[row] + k * r.dilation * r.column;
      const V::R w = V::load(r.row_weight[row] + k * r.weight_pitch);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const float* at = x + p * r.step * r.column;
        sum[p] = V::fma(r.lanes == V::W ? V::load(at) : V::load_n(at, r.lanes), w, sum[p]);
      }
    }
  store_pixels<P>(r, sum);
}

inline void advance(DepthwiseRow& r, int64_t pixels) {
  r.input += pixels * r.step * r.column;
  r.output += pixels * r.output_pixel;
}

template <int K, int S>
void sliding_row(DepthwiseRow r, int64_t pixels) {
  const auto some = [&]<int P>() {
    if (r.lanes == VectorF32::W)
      sliding_pixels<K, S, P, false>(r);
    else
      sliding_pixels<K, S, P, true>(r);
    advance(r, P);
    pixels -= P;
  };
  while (pixels >= 8) some.template operator()<8>();
  if (pixels >= 4) some.template operator()<4>();
  if (pixels >= 2) some.template operator()<2>();
  if (pixels >= 1) some.template operator()<1>();
}

void depthwise_run(const DepthwiseRow& row, int64_t pixels, int64_t first, int64_t last, int64_t kernel) noexcept {
  if (first == 0 && last == kernel && (row.dilation == 1) && row.step <= 2) {
    switch (kernel * 2 + row.step) {
      case 7:
        return sliding_row<3, 1>(row, pixels);
      case 8:
        return sliding_row<3, 2>(row, pixels);
      case 11:
        return sliding_row<5, 1>(row, pixels);
      case 12:
        return sliding_row<5, 2>(row, pixels);
      case 15:
        return sliding_row<7, 1>(row, pixels);
      case 16:
        return sliding_row<7, 2>(row, pixels);
      default:
        break;
    }
  }
  DepthwiseRow r = row;
  for (; pixels >= 8; pixels -= 8) {
    any_pixels<8>(r, first, last);
    advance(r, 8);
  }
  for (; pixels >= 2; pixels -= 2) {
    any_pixels<2>(r, first, last);
    advance(r, 2);
  }
  if (pixels > 0) any_pixels<1>(r, first, last);
}

}  // namespace
}  // namespace sconce
