// The inner loop of convolution_planes.h over the vectors of gemm_vectors.h. Included once per instruction set, after
// gemm_vectors.h; everything is internal to that translation unit.

namespace sconce {
namespace {

// Integers, in the compiler's own vectors. Products and sums wrap.
template <class E>
struct VectorOf {
  using T = E;
  using U = std::make_unsigned_t<E>;
  using R [[gnu::vector_size(32)]] = U;
  static constexpr int W = 32 / sizeof(E);
  static R zero() { return R{}; }
  static R broadcast(const E* p) { return R{} + static_cast<U>(*p); }
  static R fma(R a, R b, R c) { return a * b + c; }
  static R load(const E* p) {
    R r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  static R load_n(const E* p, int64_t n) {
    R r{};
    __builtin_memcpy(&r, p, static_cast<size_t>(n) * sizeof(E));
    return r;
  }
  static void store(E* p, R v) { __builtin_memcpy(p, &v, sizeof v); }
  static void store_n(E* p, R v, int64_t n) { __builtin_memcpy(p, &v, static_cast<size_t>(n) * sizeof(E)); }
};

template <class E>
struct PlaneVectorFor {
  using Type = VectorOf<E>;
};
template <>
struct PlaneVectorFor<float> {
  using Type = VectorF32;
};
template <>
struct PlaneVectorFor<double> {
  using Type = VectorF64;
};

// The registers hold the sums, the vectors of one step and a weight.
#if defined(SCONCE_GEMM_AVX512)
constexpr int kPlaneRows = 6, kPlaneVectors = 4, kPlaneVectorsOfOne = 8;
#else
constexpr int kPlaneRows = 4, kPlaneVectors = 2, kPlaneVectorsOfOne = 6;
#endif

// `Vectors` whole vectors from q = 0, or, with Tail, one vector of the first `left` elements.
template <class V, int Rows, int Vectors, bool Tail>
inline void plane_tile(const PlaneSteps& s, const typename V::T* x, const typename V::T* w, const typename V::T* bias,
                       int64_t left, typename V::T* out, int64_t out_row) {
  typename V::R sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const auto start = bias ? V::broadcast(bias + r) : V::zero();
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sum[r][v] = start;
  }
  for (int64_t c = 0; c < s.channels; ++c, x += s.x_channel, w += s.w_channel)
    for (int64_t t = 0; t < s.taps; ++t) {
      const typename V::T* at = x + s.tap_x[t];
      const typename V::T* weight = w + s.tap_w[t];
      typename V::R xs[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) xs[v] = Tail ? V::load_n(at, left) : V::load(at + v * V::W);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const auto ws = V::broadcast(weight + r * s.w_out);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sum[r][v] = V::fma(ws, xs[v], sum[r][v]);
      }
    }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      if constexpr (Tail)
        V::store_n(out + r * out_row, sum[r][v], left);
      else
        V::store(out + r * out_row + v * V::W, sum[r][v]);
}

template <class V, int Rows>
void plane_rows(const PlaneSteps& s, const typename V::T* x, const typename V::T* w, const typename V::T* bias,
                int64_t length, typename V::T* out, int64_t out_row) {
  constexpr int kMost = Rows == 1 ? kPlaneVectorsOfOne : kPlaneVectors;
  int64_t q = 0;
  for (; q + kMost * V::W <= length; q += kMost * V::W)
    plane_tile<V, Rows, kMost, false>(s, x + q, w, bias, 0, out + q, out_row);
  if constexpr (kMost > 2)
    for (; q + 2 * V::W <= length; q += 2 * V::W) plane_tile<V, Rows, 2, false>(s, x + q, w, bias, 0, out + q, out_row);
  for (; q + V::W <= length; q += V::W) plane_tile<V, Rows, 1, false>(s, x + q, w, bias, 0, out + q, out_row);
  if (q < length) plane_tile<V, Rows, 1, true>(s, x + q, w, bias, length - q, out + q, out_row);
}

template <class T>
void plane_run(const PlaneSteps& s, const T* x, const T* w, const T* bias, int64_t rows, int64_t length, T* out,
               int64_t out_row) noexcept {
  using V = typename PlaneVectorFor<T>::Type;
  using Run = void (*)(const PlaneSteps&, const T*, const T*, const T*, int64_t, T*, int64_t);
  static constexpr Run kByRows[] = {
    plane_rows<V, 1>,
    plane_rows<V, 2>,
    plane_rows<V, 3>,
    plane_rows<V, 4>
#if defined(SCONCE_GEMM_AVX512)
    ,
    plane_rows<V, 5>,
    plane_rows<V, 6>
#endif
  };
  static_assert(std::size(kByRows) == kPlaneRows);
  kByRows[rows - 1](s, x, w, bias, length, out, out_row);
}

}  // namespace
}  // namespace sconce
