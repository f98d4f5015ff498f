// The inner loops over the vectors of gemm_vectors.h: register tiles, dot products, packing. Included once per
// instruction set, after gemm_vectors.h; everything is internal to that translation unit.

namespace sconce {
namespace {

template <class S>
struct VectorFor {
  using Type = VectorF32;
};
template <>
struct VectorFor<double> {
  using Type = VectorF64;
};
template <>
struct VectorFor<ComplexDouble> {
  using Type = VectorF64;
};

// Rows of the register tile: the registers hold the sums, two vectors of b and one of a.
#if defined(SCONCE_GEMM_AVX512)
constexpr int kTileRows = 14;
constexpr int kComplexRows = 6;
constexpr int kDotRows = 6;
constexpr int kComplexDotRows = 3;
#else
constexpr int kTileRows = 6;
constexpr int kComplexRows = 3;
constexpr int kDotRows = 2;
constexpr int kComplexDotRows = 1;
#endif
constexpr int kTileVectors = 2;

// c[Rows, columns] from a[Rows, k] and b[k, Vectors * W]. With few rows, several steps of k have separate sums, so
// that a multiplication need not wait for the previous one.
template <class V, class S, int Rows, int Vectors>
void tile(int64_t k, const typename V::T* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs, int64_t columns,
          const GemmEpilogue<S>& e, int64_t row, S* c, int64_t c_rs) {
  constexpr int kSteps = Rows * Vectors >= 8 ? 1 : Rows * Vectors >= 4 ? 2 : 4;
  typename V::R sum[kSteps][Rows][Vectors];
#pragma GCC unroll 4
  for (int s = 0; s < kSteps; ++s)
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[s][i][j] = V::zero();

  const auto step = [&](int s) {
    typename V::R bs[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) bs[j] = V::load(b + j * V::W);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const typename V::R as = V::broadcast(a + i * a_rs);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[s][i][j] = V::fma(as, bs[j], sum[s][i][j]);
    }
    a += a_cs;
    b += b_rs;
  };
  int64_t p = 0;
  for (; p + kSteps <= k; p += kSteps)
#pragma GCC unroll 4
    for (int s = 0; s < kSteps; ++s) step(s);
  if constexpr (kSteps > 1) {
    for (; p < k; ++p) step(0);
#pragma GCC unroll 4
    for (int s = 1; s < kSteps; ++s)
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sum[0][i][j] = V::add(sum[0][i][j], sum[s][i][j]);
  }

  if (columns == Vectors * V::W && e.alpha == 1 && (!e.self || (e.self_cs == 1 && e.beta == 1))) {
    if (const S* self = e.self) {
      self += row * e.self_rs;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sum[0][i][j] = V::add(sum[0][i][j], V::load(self + i * e.self_rs + j * V::W));
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) V::store(c + i * c_rs + j * V::W, sum[0][i][j]);
    return;
  }
  typename V::T sums[Rows][Vectors * V::W];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) V::store(&sums[i][j * V::W], sum[0][i][j]);
  finish_rows<V, S>(sums[0], Rows, Vectors * V::W, columns, e, row, c, c_rs);
}

// As above for complex numbers, (re, im) adjacent in b and c: sums of re(a)*b and of im(a)*b, combined at the end.
template <class V, class S, int Rows, int Vectors>
void complex_tile(int64_t k, const S* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs, int64_t columns,
                  const GemmEpilogue<S>& e, int64_t row, S* c, int64_t c_rs) {
  using T = typename V::T;
  typename V::R re[Rows][Vectors], im[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) re[i][j] = im[i][j] = V::zero();
  for (int64_t p = 0; p < k; ++p, a += a_cs, b += b_rs) {
    typename V::R bs[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) bs[j] = V::load(reinterpret_cast<const T*>(b) + j * V::W);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const T* at = reinterpret_cast<const T*>(a + i * a_rs);
      const typename V::R r = V::broadcast(at), m = V::broadcast(at + 1);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) {
        re[i][j] = V::fma(r, bs[j], re[i][j]);
        im[i][j] = V::fma(m, bs[j], im[i][j]);
      }
    }
  }
  S sums[Rows][Vectors * V::W / 2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      V::store(reinterpret_cast<T*>(sums[i]) + j * V::W, V::complex_sum(re[i][j], im[i][j]));
  for (int i = 0; i < Rows; ++i)
    finish_row<S>(sums[i], columns, e, e.self ? e.self + (row + i) * e.self_rs : nullptr, c + i * c_rs);
}

template <class S>
using Tile = void (*)(int64_t k, const Sum<S>* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs, int64_t columns,
                      const GemmEpilogue<S>& e, int64_t row, S* c, int64_t c_rs);

template <class S, int Vectors, size_t... I>
constexpr std::array<Tile<S>, sizeof...(I)> tiles(std::index_sequence<I...>) {
  using V = typename VectorFor<S>::Type;
  if constexpr (kIsComplex<S>)
    return {&complex_tile<V, S, static_cast<int>(I) + 1, Vectors>...};
  else
    return {&tile<V, S, static_cast<int>(I) + 1, Vectors>...};
}

template <class S>
constexpr int kRowsOf = kIsComplex<S> ? kComplexRows : kTileRows;
template <class S>
constexpr int kWidthOf = VectorFor<S>::Type::W / (kIsComplex<S> ? 2 : 1);

template <class S>
void panel(int64_t m, int64_t k, const Sum<S>* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs, int64_t columns,
           const GemmEpilogue<S>& e, S* c, int64_t c_rs) noexcept {
  constexpr int kRows = kRowsOf<S>;
  static constexpr auto kNarrow = tiles<S, 1>(std::make_index_sequence<kRows>());
  static constexpr auto kWide = tiles<S, kTileVectors>(std::make_index_sequence<kRows>());
  const auto& by_rows = columns > kWidthOf<S> ? kWide : kNarrow;
  // As few tiles as possible, and these as even as possible.
  int64_t left = (m + kRows - 1) / kRows;
  for (int64_t row = 0; row < m; --left) {
    const int64_t rows = (m - row + left - 1) / left;
    by_rows[static_cast<size_t>(rows - 1)](k, a + row * a_rs, a_rs, a_cs, b, b_rs, columns, e, row, c + row * c_rs,
                                           c_rs);
    row += rows;
  }
}

// Four columns of b against Rows rows of a.
template <class V, class S, int Rows>
void dot_tile(int64_t k, const typename V::T* a, int64_t a_rs, const S* b, int64_t b_cs, typename V::T (*sums)[4]) {
  constexpr int kSteps = Rows == 1 ? 2 : 1;
  typename V::R sum[kSteps][Rows][4];
#pragma GCC unroll 2
  for (int s = 0; s < kSteps; ++s)
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sum[s][i][j] = V::zero();
  int64_t p = 0;
  for (; p + kSteps * V::W <= k; p += kSteps * V::W)
#pragma GCC unroll 2
    for (int s = 0; s < kSteps; ++s) {
      typename V::R as[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) as[i] = V::load(a + i * a_rs + p + s * V::W);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const typename V::R bs = V::load(b + j * b_cs + p + s * V::W);
        // One row reads b at memory bandwidth.
        if constexpr (Rows == 1) __builtin_prefetch(b + j * b_cs + p + s * V::W + kDotAhead / sizeof(S), 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) sum[s][i][j] = V::fma(as[i], bs, sum[s][i][j]);
      }
    }
  for (; p < k; p += V::W) {
    const int64_t n = k - p < V::W ? k - p : V::W;
    typename V::R as[Rows];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) as[i] = V::load_n(a + i * a_rs + p, n);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const typename V::R bs = V::load_n(b + j * b_cs + p, n);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) sum[0][i][j] = V::fma(as[i], bs, sum[0][i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    if constexpr (kSteps == 2)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sum[0][i][j] = V::add(sum[0][i][j], sum[1][i][j]);
    V::sum4(sum[0][i][0], sum[0][i][1], sum[0][i][2], sum[0][i][3], sums[i]);
  }
}

// As above for complex numbers: the sums of re(a)re(b), im(a)im(b) and of re(a)im(b), im(a)re(b), interleaved.
template <class V, class S, int Rows>
void complex_dot_tile(int64_t k, const S* a, int64_t a_rs, const S* b, int64_t b_cs, S (*sums)[4]) {
  using T = typename V::T;
  constexpr int64_t kAtOnce = V::W / 2;
  typename V::R same[Rows][4], crossed[Rows][4];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) same[i][j] = crossed[i][j] = V::zero();
  for (int64_t p = 0; p < k; p += kAtOnce) {
    const int64_t n = 2 * (k - p);
    typename V::R as[Rows];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const T* at = reinterpret_cast<const T*>(a + i * a_rs + p);
      as[i] = n >= V::W ? V::load(at) : V::load_n(at, n);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const T* at = reinterpret_cast<const T*>(b + j * b_cs + p);
      const typename V::R bs = n >= V::W ? V::load(at) : V::load_n(at, n), turned = V::swap_pairs(bs);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        same[i][j] = V::fma(as[i], bs, same[i][j]);
        crossed[i][j] = V::fma(as[i], turned, crossed[i][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      T x[V::W], y[V::W], re = 0, im = 0;
      V::store(x, same[i][j]);
      V::store(y, crossed[i][j]);
      for (int l = 0; l < V::W; l += 2) {
        re += x[l] - x[l + 1];
        im += y[l] + y[l + 1];
      }
      sums[i][j] = S(re, im);
    }
}

template <class S>
constexpr int kDotRowsOf = kIsComplex<S> ? kComplexDotRows : kDotRows;

template <class S, size_t... I>
constexpr auto dot_tiles(std::index_sequence<I...>) {
  using V = typename VectorFor<S>::Type;
  if constexpr (kIsComplex<S>)
    return std::array{&complex_dot_tile<V, S, static_cast<int>(I) + 1>...};
  else
    return std::array{&dot_tile<V, S, static_cast<int>(I) + 1>...};
}

template <class S>
void dot(int64_t m, int64_t n, int64_t k, const Sum<S>* a, int64_t a_rs, const S* b, int64_t b_cs,
         const GemmEpilogue<S>& e, S* c, int64_t c_rs) noexcept {
  static constexpr auto kByRows = dot_tiles<S>(std::make_index_sequence<kDotRowsOf<S>>());
  dot_by_rows<S, Sum<S>, kDotRowsOf<S>>(kByRows, m, n, k, a, a_rs, b, b_cs, e, c, c_rs);
}

// Adds the products of Count rows of b to the sums; b's rows may be any of its rows, b_rs apart.
template <class V, class S, int Count>
void stream_rows(int64_t m, int64_t columns, const Sum<S>* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs,
                 typename V::T* sums, int64_t sums_rs) {
  for (int64_t j = 0; j < columns; j += V::W) {
    const int64_t n = columns - j;
    typename V::R bs[Count];
#pragma GCC unroll 8
    for (int q = 0; q < Count; ++q) bs[q] = n >= V::W ? V::load(b + q * b_rs + j) : V::load_n(b + q * b_rs + j, n);
    for (int64_t i = 0; i < m; ++i) {
      typename V::R v = V::load(sums + i * sums_rs + j);
#pragma GCC unroll 8
      for (int q = 0; q < Count; ++q) v = V::fma(V::broadcast(a + i * a_rs + q * a_cs), bs[q], v);
      V::store(sums + i * sums_rs + j, v);
    }
  }
}

// A few rows against rows of b that are read from end to end, several at a time, so that memory streams; the sums of
// as many columns as fit the first-level cache are kept in memory. For one row, unless b's rows are longer than that,
// the rows read together are a quarter of b apart, so that memory is read as four long streams: 2,304 columns, one
// thread (Zen 5), 25 GB/s with eight neighbouring rows, 44 GB/s with rows a quarter apart. The choice does not depend
// on n, which threads share.
template <class S>
void stream(int64_t m, int64_t n, int64_t k, const Sum<S>* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs,
            const GemmEpilogue<S>& e, S* c, int64_t c_rs) noexcept {
  using V = typename VectorFor<S>::Type;
  constexpr int64_t kSums = 4096;
  alignas(64) typename V::T sums[kSums];
  const int64_t block = kSums / m / V::W * V::W;
  GemmEpilogue<S> here = e;
  for (int64_t j = 0; j < n; j += block) {
    const int64_t columns = n - j < block ? n - j : block;
    const int64_t sums_rs = (columns + V::W - 1) / V::W * V::W;
    for (int64_t i = 0; i < m * sums_rs; i += V::W) V::store(sums + i, V::zero());
    int64_t p = 0;
    if (m == 1 && b_rs <= kSums) {
      const int64_t quarter = k / 4;
      for (; p < quarter; ++p)
        stream_rows<V, S, 4>(m, columns, a + p * a_cs, a_rs, quarter * a_cs, b + p * b_rs + j, quarter * b_rs, sums,
                             sums_rs);
      p *= 4;
    }
    for (; p + 8 <= k; p += 8)
      stream_rows<V, S, 8>(m, columns, a + p * a_cs, a_rs, a_cs, b + p * b_rs + j, b_rs, sums, sums_rs);
    for (; p < k; ++p)
      stream_rows<V, S, 1>(m, columns, a + p * a_cs, a_rs, a_cs, b + p * b_rs + j, b_rs, sums, sums_rs);
    finish_rows<V, S>(sums, m, sums_rs, columns, here, 0, c + j, c_rs);
    if (here.self) here.self += columns * here.self_cs;
  }
}

template <class S>
void pack(int64_t k, int64_t columns, const S* b, int64_t b_rs, int64_t b_cs, S* to) noexcept {
  const int64_t width = columns > kWidthOf<S> ? kTileVectors * kWidthOf<S> : kWidthOf<S>;
  const auto zero_rest = [&](int64_t from, int64_t p) {
    for (int64_t j = from; j < width; ++j) to[p * width + j] = S{};
  };
  if (b_cs == 1) {
    if (columns == width) {
      // With a constant size, the copies become a few vector moves.
      for (int64_t p = 0; p < k; ++p)
        if (width == kWidthOf<S>)
          __builtin_memcpy(to + p * width, b + p * b_rs, kWidthOf<S> * sizeof(S));
        else
          __builtin_memcpy(to + p * width, b + p * b_rs, kTileVectors * kWidthOf<S> * sizeof(S));
      return;
    }
    for (int64_t p = 0; p < k; ++p) {
      __builtin_memcpy(to + p * width, b + p * b_rs, static_cast<size_t>(columns) * sizeof(S));
      zero_rest(columns, p);
    }
    return;
  }
  int64_t done = 0;  // columns
  if constexpr (sizeof(S) == 4) {
    if (b_rs == 1)
      for (; done + 8 <= columns; done += 8) {
        int64_t p = 0;
        for (; p + 8 <= k; p += 8)
          transpose8(reinterpret_cast<const float*>(b + done * b_cs + p), b_cs, 4,
                     reinterpret_cast<float*>(to + p * width + done), width);
        for (; p < k; ++p)
          for (int64_t j = done; j < done + 8; ++j) to[p * width + j] = b[p + j * b_cs];
      }
  }
  if constexpr (sizeof(S) == 8) {
    if (b_rs == 1)
      for (; done + 4 <= columns; done += 4) {
        int64_t p = 0;
        for (; p + 4 <= k; p += 4)
          transpose4(reinterpret_cast<const double*>(b + done * b_cs + p), b_cs,
                     reinterpret_cast<double*>(to + p * width + done), width);
        for (; p < k; ++p)
          for (int64_t j = done; j < done + 4; ++j) to[p * width + j] = b[p + j * b_cs];
      }
  }
  // Blocks of a few cache lines, so that each line is read once.
  constexpr int64_t kBlock = 16;
  for (; done < columns; done += kBlock) {
    const int64_t end = columns - done < kBlock ? columns : done + kBlock;
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = done; j < end; ++j) to[p * width + j] = b[p * b_rs + j * b_cs];
  }
  if (columns < width)
    for (int64_t p = 0; p < k; ++p) zero_rest(columns, p);
}

template <class S>
constexpr GemmKernels<S> make_kernels() {
  GemmKernels<S> kernels{};
  kernels.wide = kTileVectors * kWidthOf<S>;
  kernels.narrow = kWidthOf<S>;
  kernels.rows = kRowsOf<S>;
  kernels.panel = &panel<S>;
  kernels.pack = &pack<S>;
  kernels.dot = &dot<S>;
  kernels.dot_rows = kDotRowsOf<S>;
  kernels.stream = nullptr;
  if constexpr (!kIsComplex<S>) kernels.stream = &stream<S>;
  return kernels;
}

}  // namespace
}  // namespace sconce
