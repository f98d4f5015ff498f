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

// Rows of the register tile: sums, two vectors of b and one of a fill the registers.
#if defined(SCONCE_GEMM_AVX512)
constexpr int kTileRows = 14;
constexpr int kComplexRows = 6;
constexpr int kDotRows = 6;
#else
constexpr int kTileRows = 6;
constexpr int kComplexRows = 3;
constexpr int kDotRows = 2;
#endif
constexpr int kTileVectors = 2;

template <class S>
using Real = decltype(std::real(Sum<S>()));

// One finished row that the fast ways do not cover.
template <class S>
void finish_row(const Sum<S>* sums, int64_t columns, const GemmEpilogue<S>& e, const S* self, S* c) {
  const auto alpha = static_cast<Real<S>>(e.alpha), beta = static_cast<Real<S>>(e.beta);
  for (int64_t j = 0; j < columns; ++j) {
    Sum<S> v = alpha * sums[j];
    if (self) v += beta * static_cast<Sum<S>>(self[j * e.self_cs]);
    c[j] = static_cast<S>(v);
  }
}

// c[Rows, columns] from a[Rows, k] and b[k, Vectors * W]. With few rows several steps of k have sums of their own, so
// that one multiplication need not wait for the one before.
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

  const S* self = e.self ? e.self + row * e.self_rs : nullptr;
  if (columns == Vectors * V::W && e.alpha == 1 && !self) {
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
  if (self && e.self_cs != 1) {
    for (int i = 0; i < Rows; ++i) finish_row<S>(sums[i], columns, e, self + i * e.self_rs, c + i * c_rs);
    return;
  }
  const auto alpha = V::broadcast(static_cast<typename V::T>(e.alpha));
  const auto beta = V::broadcast(static_cast<typename V::T>(e.beta));
  for (int i = 0; i < Rows; ++i, c += c_rs) {
    for (int64_t j = 0; j < columns; j += V::W) {
      const int64_t n = columns - j;
      typename V::R v = V::load(&sums[i][j]), s = V::zero();
      if (self) s = n >= V::W ? V::load(self + j) : V::load_n(self + j, n);
      v = V::fma(v, alpha, V::fma(s, beta, V::zero()));
      if (n >= V::W)
        V::store(c + j, v);
      else
        V::store_n(c + j, v, n);
    }
    if (self) self += e.self_rs;
  }
}

// The same for complex numbers, (re, im) side by side in b and c: sums of re(a)*b and of im(a)*b, joined at the end.
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

template <class S, size_t... I>
constexpr auto dot_tiles(std::index_sequence<I...>) {
  using V = typename VectorFor<S>::Type;
  return std::array{&dot_tile<V, S, static_cast<int>(I) + 1>...};
}

template <class S>
void dot(int64_t m, int64_t n, int64_t k, const Sum<S>* a, int64_t a_rs, const S* b, int64_t b_cs,
         const GemmEpilogue<S>& e, S* c, int64_t c_rs) noexcept {
  static constexpr auto kByRows = dot_tiles<S>(std::make_index_sequence<kDotRows>());
  for (int64_t j = 0; j < n; j += 4) {
    const int64_t columns = n - j < 4 ? n - j : 4;
    // Fewer than four columns are left: the last one stands in for the missing ones.
    const S* at = b + j * b_cs;
    if (columns < 4 && n >= 4) at = b + (n - 4) * b_cs;
    const int64_t skip = columns < 4 && n >= 4 ? 4 - columns : 0;
    const int64_t apart = n >= 4 ? b_cs : 0;
    int64_t left = (m + kDotRows - 1) / kDotRows;
    for (int64_t row = 0; row < m; --left) {
      const int64_t rows = (m - row + left - 1) / left;
      Sum<S> sums[kDotRows][4];
      if (n >= 4) {
        kByRows[static_cast<size_t>(rows - 1)](k, a + row * a_rs, a_rs, at, apart, sums);
      } else {
        for (int64_t column = columns - 1; column >= 0; --column) {
          Sum<S> same[kDotRows][4];
          kByRows[static_cast<size_t>(rows - 1)](k, a + row * a_rs, a_rs, at + column * b_cs, 0, same);
          for (int64_t i = 0; i < rows; ++i) sums[i][column] = same[i][0];
        }
      }
      for (int64_t i = 0; i < rows; ++i)
        finish_row<S>(sums[i] + skip, columns, e, e.self ? e.self + (row + i) * e.self_rs + j * e.self_cs : nullptr,
                      c + (row + i) * c_rs + j);
      row += rows;
    }
  }
}

// An 8 x 8 block of 4-byte elements, columns to rows.
inline void transpose8(const float* from, int64_t apart, float* to, int64_t to_apart) {
  __m256 r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * apart)),
                                _mm_loadu_ps(from + (i + 4) * apart), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * apart + 4)),
                                    _mm_loadu_ps(from + (i + 4) * apart + 4), 1);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    t[h + 0] = _mm256_unpacklo_ps(r[h + 0], r[h + 1]);
    t[h + 1] = _mm256_unpackhi_ps(r[h + 0], r[h + 1]);
    t[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
    t[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    _mm256_storeu_ps(to + (h + 0) * to_apart, _mm256_shuffle_ps(t[h], t[h + 2], 0x44));
    _mm256_storeu_ps(to + (h + 1) * to_apart, _mm256_shuffle_ps(t[h], t[h + 2], 0xEE));
    _mm256_storeu_ps(to + (h + 2) * to_apart, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0x44));
    _mm256_storeu_ps(to + (h + 3) * to_apart, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0xEE));
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
      // A constant size where it matters: the copies become a few vector moves.
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
          transpose8(reinterpret_cast<const float*>(b + done * b_cs + p), b_cs,
                     reinterpret_cast<float*>(to + p * width + done), width);
        for (; p < k; ++p)
          for (int64_t j = done; j < done + 8; ++j) to[p * width + j] = b[p + j * b_cs];
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
  kernels.dot = nullptr;
  kernels.dot_rows = 0;
  if constexpr (!kIsComplex<S>) {
    kernels.dot = &dot<S>;
    kernels.dot_rows = kDotRows;
  }
  return kernels;
}

}  // namespace
}  // namespace sconce
