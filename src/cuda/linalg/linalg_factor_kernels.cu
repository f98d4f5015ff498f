// Singular values by Jacobi's rotations from one side: pairs of columns are rotated until all columns are orthogonal.
// Their lengths are the singular values, and the product of the rotations is V.
#include <cfloat>

#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/linalg/small_numbers.cuh"

namespace sconce::cuda {
namespace {

constexpr int kMaxWarps = 16, kMaxSweeps = 40;
constexpr size_t kUnaskedBytes = 46 << 10;  // of shared memory, with what the kernel has besides

// For matrices whose largest element is between 1 and 2.
template <class R>
struct Limits {
  static constexpr R kEpsilon = FLT_EPSILON;
  static constexpr R kNothing = 0x1p-80f;  // a squared length below which a column counts as zero
  static constexpr R kScale =
      0x1p40f;  // by which products of columns are multiplied, so that their squares are in range
};
template <>
struct Limits<double> {
  static constexpr double kEpsilon = DBL_EPSILON;
  static constexpr double kNothing = 0x1p-800;
  static constexpr double kScale = 0x1p400;
};

// Where a few last bits do not matter: any angle near the right one does.
__device__ inline float rough_quotient(float a, float b) { return __fdividef(a, b); }
__device__ inline double rough_quotient(double a, double b) { return a / b; }
__device__ inline float rough_root(float a) { return a * rsqrtf(a); }
__device__ inline double rough_root(double a) { return sqrt(a); }

// Rotates by the angle with sine s and cosine c; ratio: s / (1 + c). Written so that small angles leave small errors:
// with c * p - s * q, all columns would slowly shrink or grow.
template <class T>
__device__ void turn(T* x, T* y, int rows, Real<T> s, Real<T> ratio, T phase, int lane) {
  for (int i = lane; i < rows; i += 32) {
    const T p = x[i], q = y[i] * phase;
    x[i] = p - s * (q + ratio * p);
    y[i] = q + s * (p - ratio * q);
  }
}

// The conjugate of v / length(v).
template <class R>
__device__ R direction_of(R v, R) {
  return copysign(R(1), v);
}
template <class R>
__device__ thrust::complex<R> direction_of(const thrust::complex<R>& v, R length) {
  const R part = 1 / length;
  return {v.real() * part, -v.imag() * part};
}

// Rotates columns x and y of A, and those of V unless null, so that x and y become orthogonal. False if they are.
template <class T>
__device__ bool rotate(T* x, T* y, int rows, T* right_x, T* right_y, int columns, Real<T> tolerance, int lane) {
  using R = Real<T>;
  R xx = 0, yy = 0;
  T xy = 0;
  for (int i = lane; i < rows; i += 32) {
    const T p = x[i], q = y[i];
    xx += squared(p);
    yy += squared(q);
    xy += conjugated(p) * q;
  }
  xx = sum_over_warp(xx);
  yy = sum_over_warp(yy);
  xy = sum_over_warp(xy);
  constexpr R kScale = Limits<R>::kScale;
  const R square = squared(xy * kScale), all = xx * kScale * (yy * kScale);
  if (fmin(xx, yy) < Limits<R>::kNothing || !(square > tolerance * tolerance * all)) return false;
  // t: the tangent of the angle; ratio: of half of it, from which the sine follows without an error of its own.
  const R length = sizeof(T) > sizeof(R) ? sqrt(square) : length_of(xy) * kScale, distance = (yy - xx) * kScale;
  const R t =
      rough_quotient(copysign(2 * length, distance), fabs(distance) + rough_root(distance * distance + 4 * square));
  const R ratio = rough_quotient(t, 1 + rough_root(1 + t * t)), s = 2 * ratio / (1 + ratio * ratio);
  const T phase = direction_of(xy * kScale, length);
  turn(x, y, rows, s, ratio, phase, lane);
  if (right_x) turn(right_x, right_y, columns, s, ratio, phase, lane);
  return true;
}

// Rotates every pair of columns once a sweep; the pairs of a round have no column in common. False if columns are not
// orthogonal in the end.
template <class T>
__device__ bool make_orthogonal(T* a, T* v, int rows, int columns) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int players = columns + columns % 2, others = players - 1;
  const Real<T> tolerance = Limits<Real<T>>::kEpsilon * sqrt(static_cast<Real<T>>(rows));
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool rotated = false;
    for (int round = 0; round < others; ++round) {
      for (int pair = warp; pair < players / 2; pair += warps) {
        int x = round + pair, y = pair == 0 ? others : round - pair;
        x -= x < others ? 0 : others;
        y += y < 0 ? others : 0;
        const int p = min(x, y), q = max(x, y);
        if (q < columns)
          rotated |= rotate(a + p * rows, a + q * rows, rows, v ? v + p * columns : nullptr,
                            v ? v + q * columns : nullptr, columns, tolerance, lane);
      }
      __syncthreads();
    }
    if (!__syncthreads_or(rotated)) return true;
  }
  return false;
}

// Adds columns to `known` orthonormal ones until there are `wanted`: each is the unit vector that the others contain
// least of, without the others. One warp; each lane reads and writes its own rows only.
template <class T>
__device__ void complete(T* u, int rows, int known, int wanted, int lane) {
  using R = Real<T>;
  for (; known < wanted; ++known) {
    R least = 2;
    int unit = rows;
    for (int i = lane; i < rows; i += 32) {
      R weight = 0;
      for (int j = 0; j < known; ++j) weight += squared(u[j * rows + i]);
      if (weight < least) {
        least = weight;
        unit = i;
      }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      const R other = __shfl_xor_sync(0xFFFFFFFFu, least, offset);
      const int at = __shfl_xor_sync(0xFFFFFFFFu, unit, offset);
      if (other < least || (other == least && at < unit)) {
        least = other;
        unit = at;
      }
    }
    T* const made = u + known * rows;
    for (int i = lane; i < rows; i += 32) made[i] = i == unit ? T(1) : T(0);
    for (int pass = 0; pass < 2; ++pass)  // the second removes the rounding errors of the first
      for (int j = 0; j < known; ++j) {
        const T* const one = u + j * rows;
        T part = 0;
        for (int i = lane; i < rows; i += 32) part += conjugated(one[i]) * made[i];
        part = sum_over_warp(part);
        for (int i = lane; i < rows; i += 32) made[i] -= one[i] * part;
      }
    R length = 0;
    for (int i = lane; i < rows; i += 32) length += squared(made[i]);
    length = sqrt(sum_over_warp(length));
    for (int i = lane; i < rows; i += 32) made[i] = made[i] / length;
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxWarps * 32) small_svd_kernel(SmallSvd svd) {
  using R = Real<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ R lengths[kMaxSmallSize];
  __shared__ R warp_largest[kMaxWarps];
  const int rows = svd.rows, columns = svd.columns, lane = threadIdx.x % 32, warp = threadIdx.x / 32,
            warps = blockDim.x / 32;
  const int64_t matrix = blockIdx.x;
  T* const a = reinterpret_cast<T*>(memory);
  T* const v = svd.left ? a + rows * columns : nullptr;
  const T* const given = static_cast<const T*>(svd.matrices) + matrix * rows * columns;
  R largest = 0;
  bool infinite = false;
  for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
    const T value = given[i];
    a[i] = value;
    largest = fmax(largest, largest_part(value));
    infinite |= !finite_parts(value);
  }
  for (int offset = 16; offset > 0; offset /= 2) largest = fmax(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, offset));
  if (lane == 0) warp_largest[warp] = largest;
  if (__syncthreads_or(infinite)) {
    if (threadIdx.x == 0) svd.info[matrix] = 1;
    return;
  }
  for (int w = 0; w < warps; ++w) largest = fmax(largest, warp_largest[w]);
  const int exponent = largest > 0 ? ilogb(largest) : 0;
  for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) a[i] = with_exponent(a[i], -exponent);
  if (v)
    for (int i = threadIdx.x; i < columns * columns; i += blockDim.x) v[i] = i % (columns + 1) == 0 ? T(1) : T(0);
  __syncthreads();

  const bool orthogonal = make_orthogonal(a, v, rows, columns);
  if (threadIdx.x == 0) svd.info[matrix] = !orthogonal;
  for (int j = warp; j < columns; j += warps) {
    R sum = 0;
    for (int i = lane; i < rows; i += 32) sum += squared(a[j * rows + i]);
    sum = sum_over_warp(sum);
    if (lane == 0) lengths[j] = sqrt(sum);
  }
  __syncthreads();
  const R least = sqrt(Limits<R>::kNothing);
  R* const values = static_cast<R*>(svd.values) + matrix * columns;
  T* const left = static_cast<T*>(svd.left) + matrix * rows * svd.left_columns;
  T* const right = static_cast<T*>(svd.right) + matrix * columns * columns;
  int known = 0;
  for (int j = 0; j < columns; ++j) known += lengths[j] >= least;
  for (int j = warp; j < columns; j += warps) {
    const R length = lengths[j];
    int place = 0;
    for (int other = 0; other < columns; ++other)
      place += lengths[other] > length || (lengths[other] == length && other < j);
    if (lane == 0) values[place] = with_exponent(length, exponent);
    if (!v) continue;
    for (int i = lane; i < columns; i += 32) {
      const T value = v[j * columns + i];
      right[place * columns + i] = svd.conjugates_right ? conjugated(value) : value;
    }
    if (length < least) continue;
    for (int i = lane; i < rows; i += 32) {
      const T value = a[j * rows + i] / length;
      left[place * rows + i] = svd.conjugates_left ? conjugated(value) : value;
    }
  }
  if (!v) return;
  __syncthreads();
  if (warp == 0) complete(left, rows, known, svd.left_columns, lane);
}

}  // namespace

void launch_small_svd(const SmallSvd& svd, cudaStream_t stream) {
  by_number(svd.dtype, [&](auto sample) {
    using T = decltype(sample);
    const int pairs = (svd.columns + 1) / 2, warps = pairs < kMaxWarps ? pairs : kMaxWarps;
    const int64_t numbers = int64_t{svd.rows + (svd.left ? svd.columns : 0)} * svd.columns;
    const size_t bytes = static_cast<size_t>(numbers) * sizeof(T);
    if (bytes > kUnaskedBytes)
      cudaFuncSetAttribute(small_svd_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    small_svd_kernel<T><<<static_cast<unsigned>(svd.count), static_cast<unsigned>(warps * 32), bytes, stream>>>(svd);
  });
}

}  // namespace sconce::cuda
