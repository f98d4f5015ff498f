// The inner loops of convolution_channels.h over the vectors of gemm_vectors.h. Included once per instruction set,
// after gemm_vectors.h; everything is internal to that translation unit.

namespace sconce {
namespace {

// The registers hold the sums, the weights of one step and an input.
#if defined(SCONCE_GEMM_AVX512)
constexpr int kChannelVectors = 4;
constexpr int kChannelPixels[5] = {0, 12, 8, 8, 6};
#else
constexpr int kChannelVectors = 3;
constexpr int kChannelPixels[5] = {0, 10, 6, 4, 0};
#endif

template <int P, int N>
using ChannelSums = VectorF32::R[P][N];

template <int P, int N>
inline void start_sums(const ChannelTile& t, ChannelSums<P, N>& sum) {
  using V = VectorF32;
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[p][v] = t.bias ? V::load(t.bias + v * V::W) : V::zero();
  if (!t.accumulate) return;
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      const int64_t n = t.lanes - v * V::W;
      const float* from = t.output + t.output_at[p] + v * V::W;
      sum[p][v] = V::add(sum[p][v], n >= V::W ? V::load(from) : V::load_n(from, n));
    }
}

template <int P, int N>
inline void store_sums(const ChannelTile& t, ChannelSums<P, N>& sum) {
  using V = VectorF32;
  if (t.relu)
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[p][v] = channel_max(V::zero(), sum[p][v]);
  if (t.lanes == N * V::W) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) V::store(t.output + t.output_at[p] + v * V::W, sum[p][v]);
    return;
  }
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v + 1 < N; ++v) V::store(t.output + t.output_at[p] + v * V::W, sum[p][v]);
    V::store_n(t.output + t.output_at[p] + (N - 1) * V::W, sum[p][N - 1], t.lanes - (N - 1) * V::W);
  }
}

template <class S, int P, int N>
inline void dense_step(const float* const* x, int64_t i, const S* w, ChannelSums<P, N>& sum) {
  using V = VectorF32;
  V::R ws[N];
#pragma GCC unroll 4
  for (int v = 0; v < N; ++v) ws[v] = V::load(w + v * V::W);
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
    const V::R xs = V::broadcast(x[p] + i);
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[p][v] = V::fma(xs, ws[v], sum[p][v]);
  }
}

// With few sums, several steps of a run have separate sums, so that a multiplication need not wait for the previous
// one.
template <class S, int P, int N>
void dense_tile(const ChannelTile& t) {
  using V = VectorF32;
  constexpr int kSteps = P * N >= 8 ? 1 : P * N >= 4 ? 2 : 4;
  const float* x[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) x[p] = t.input + t.input_at[p];
  ChannelSums<P, N> sum;
  start_sums<P, N>(t, sum);
  const S* w = static_cast<const S*>(t.weight);
  if constexpr (kSteps == 1) {
    for (int64_t r = 0; r < t.run_count; ++r) {
      const int64_t end = t.runs[r].offset + t.runs[r].length;
      for (int64_t i = t.runs[r].offset; i < end; ++i, w += N * V::W) dense_step<S, P, N>(x, i, w, sum);
    }
  } else {
    ChannelSums<P, N> more[kSteps - 1];
#pragma GCC unroll 4
    for (int s = 0; s + 1 < kSteps; ++s)
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) more[s][p][v] = V::zero();
    for (int64_t r = 0; r < t.run_count; ++r) {
      int64_t i = t.runs[r].offset;
      const int64_t end = i + t.runs[r].length;
      for (; i + kSteps <= end; i += kSteps, w += kSteps * N * V::W) {
        dense_step<S, P, N>(x, i, w, sum);
#pragma GCC unroll 4
        for (int s = 1; s < kSteps; ++s) dense_step<S, P, N>(x, i + s, w + s * N * V::W, more[s - 1]);
      }
      for (; i < end; ++i, w += N * V::W) dense_step<S, P, N>(x, i, w, sum);
    }
#pragma GCC unroll 4
    for (int s = 0; s + 1 < kSteps; ++s)
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[p][v] = V::add(sum[p][v], more[s][p][v]);
  }
  store_sums<P, N>(t, sum);
}

template <int P, int N, bool Tail>
inline void depthwise_steps(const ChannelTile& t, ChannelSums<P, N>& sum) {
  using V = VectorF32;
  const float* x[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) x[p] = t.input + t.input_at[p];
  const float* w = static_cast<const float*>(t.weight);
  const int64_t last = t.lanes - (N - 1) * V::W;
  for (int64_t r = 0; r < t.run_count; ++r, w += N * V::W) {
    const int64_t at = t.runs[r].offset;
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      const V::R ws = V::load(w + v * V::W);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        const float* from = x[p] + at + v * V::W;
        sum[p][v] = V::fma(Tail && v + 1 == N ? V::load_n(from, last) : V::load(from), ws, sum[p][v]);
      }
    }
  }
}

template <int P, int N>
void depthwise_tile(const ChannelTile& t) {
  ChannelSums<P, N> sum;
  start_sums<P, N>(t, sum);
  if (t.lanes == N * VectorF32::W)
    depthwise_steps<P, N, false>(t, sum);
  else
    depthwise_steps<P, N, true>(t, sum);
  store_sums<P, N>(t, sum);
}

using ChannelTileOf = void (*)(const ChannelTile&);

template <class S, int N, size_t... P>
constexpr auto dense_tiles(std::index_sequence<P...>) {
  return std::array<ChannelTileOf, sizeof...(P)>{&dense_tile<S, static_cast<int>(P) + 1, N>...};
}
template <int N, size_t... P>
constexpr auto depthwise_tiles(std::index_sequence<P...>) {
  return std::array<ChannelTileOf, sizeof...(P)>{&depthwise_tile<static_cast<int>(P) + 1, N>...};
}

template <class S, int N>
constexpr auto kDenseTiles = dense_tiles<S, N>(std::make_index_sequence<kChannelPixels[N]>());
template <int N>
constexpr auto kDepthwiseTiles = depthwise_tiles<N>(std::make_index_sequence<kChannelPixels[N]>());

template <class S>
void dense_of(int vectors, size_t p, const ChannelTile& tile) {
  switch (vectors) {
    case 1:
      return kDenseTiles<S, 1>[p](tile);
    case 2:
      return kDenseTiles<S, 2>[p](tile);
    case 3:
      return kDenseTiles<S, 3>[p](tile);
#if defined(SCONCE_GEMM_AVX512)
    default:
      return kDenseTiles<S, 4>[p](tile);
#endif
  }
}

void dense_entry(int vectors, int64_t pixels, const ChannelTile& tile) noexcept {
  const auto p = static_cast<size_t>(pixels - 1);
  if (tile.weight_dtype == DType::kFloat32) return dense_of<float>(vectors, p, tile);
  if (tile.weight_dtype == DType::kBFloat16) return dense_of<BFloat16>(vectors, p, tile);
  return dense_of<Half>(vectors, p, tile);
}

void depthwise_entry(int vectors, int64_t pixels, const ChannelTile& tile) noexcept {
  const auto p = static_cast<size_t>(pixels - 1);
  switch (vectors) {
    case 1:
      return kDepthwiseTiles<1>[p](tile);
    case 2:
      return kDepthwiseTiles<2>[p](tile);
    case 3:
      return kDepthwiseTiles<3>[p](tile);
#if defined(SCONCE_GEMM_AVX512)
    default:
      return kDepthwiseTiles<4>[p](tile);
#endif
  }
}

void transpose_entry(const float* from, int64_t from_apart, int64_t columns, int64_t rows, const int64_t* row, bool pad,
                     float* to, int64_t apart) noexcept {
  const int64_t whole = pad ? columns : columns & ~int64_t{7};
  int64_t j = 0;
  for (; j < whole; j += 8) {
    const float* at[8];
    for (int64_t c = 0; c < 8; ++c) at[c] = from + std::min(j + c, columns - 1) * from_apart;
    int64_t k = 0;
    for (; k + 8 <= rows; k += 8)
      transpose8([&](int64_t c) { return reinterpret_cast<const char*>(at[c] + k); },
                 [&](int64_t i) { return to + (row ? row[k + i] : k + i) * apart + j; });
    for (; k < rows; ++k)
      for (int64_t c = 0; c < 8; ++c) to[(row ? row[k] : k) * apart + j + c] = at[c][k];
  }
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t c = j; c < columns; ++c) to[(row ? row[k] : k) * apart + c] = from[c * from_apart + k];
}

constexpr DepthwiseTiles kDepthwiseRows = {depthwise_run};

constexpr ChannelTiles make_channel_tiles() {
  return {VectorF32::W,
          kChannelVectors,
          {kChannelPixels[0], kChannelPixels[1], kChannelPixels[2], kChannelPixels[3], kChannelPixels[4]},
          dense_entry,
          depthwise_entry,
          transpose_entry,
          &kDepthwiseRows};
}

}  // namespace
}  // namespace sconce
