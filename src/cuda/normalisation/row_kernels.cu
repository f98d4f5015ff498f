#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/device_code/warp_sum.cuh"
#include "src/cuda/normalisation/row_kernels.h"
#include "src/tensor/rules/distance_norms.h"

namespace sconce::cuda {
namespace {

template <class Norm, class T>
__device__ T distance_of(const T* a, const T* b, int64_t m, T p) {
  T sum = 0;
  for (int64_t k = 0; k < m; ++k) sum = Norm::join(sum, Norm::map(fabs(a[k] - b[k]), p));
  return Norm::finish(sum, p);
}

// A block computes a square of distances, each thread four by four of them, and reads the rows through shared memory in
// parts. Each sum follows the order of the row.
constexpr int kTile = 64, kPart = 16, kEach = 4;
template <class Norm, class T>
__global__ void __launch_bounds__(kPart* kPart) distance_kernel(Distances d, T* result, Divider across, Divider down) {
  __shared__ T left[kPart][kTile + 1], right[kPart][kTile + 1];
  int64_t batch = blockIdx.x;
  const int64_t column = across.take(batch) * kTile, row = down.take(batch) * kTile;
  const T* a = static_cast<const T*>(d.a) + batch * d.p * d.m;
  const T* b = static_cast<const T*>(d.b) + batch * d.r * d.m;
  const int x = threadIdx.x % kPart, y = threadIdx.x / kPart;
  const T p = static_cast<T>(d.norm);
  T sums[kEach][kEach] = {};
  for (int64_t begin = 0; begin < d.m; begin += kPart) {
    for (int i = y; i < kTile; i += kPart) {
      const int64_t k = begin + x;
      left[x][i] = k < d.m && row + i < d.p ? a[(row + i) * d.m + k] : T(0);
      right[x][i] = k < d.m && column + i < d.r ? b[(column + i) * d.m + k] : T(0);
    }
    __syncthreads();
    const int length = d.m - begin < kPart ? static_cast<int>(d.m - begin) : kPart;
    for (int k = 0; k < length; ++k) {
      T own[kEach], other[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        own[i] = left[k][y + i * kPart];
        other[i] = right[k][x + i * kPart];
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = Norm::join(sums[i][j], Norm::map(fabs(own[i] - other[j]), p));
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t to = row + y + i * kPart, at = column + x + j * kPart;
      if (to < d.p && at < d.r) result[(batch * d.p + to) * d.r + at] = Norm::finish(sums[i][j], p);
    }
}

template <class Norm, class T>
void distance_grid(const Distances d, T* result, cudaStream_t stream) {
  const int64_t across = (d.r + kTile - 1) / kTile, down = (d.p + kTile - 1) / kTile;
  // Smaller squares would leave most of a block idle.
  if (d.p >= kPart && d.r >= kPart && d.batch * across * down <= INT32_MAX) {
    distance_kernel<Norm, T><<<static_cast<unsigned>(d.batch * across * down), kPart * kPart, 0, stream>>>(
        d, result, Divider(across), Divider(down));
    return;
  }
  grid_loop(d.batch * d.p * d.r, stream, [=] __device__(int64_t i) {
    const int64_t column = i % d.r, row = i / d.r;
    result[i] = distance_of<Norm, T>(static_cast<const T*>(d.a) + row * d.m,
                                     static_cast<const T*>(d.b) + (row / d.p * d.r + column) * d.m, d.m,
                                     static_cast<T>(d.norm));
  });
}
template <class Norm, class T>
void slope_grid(const Distances d, const T* grads, const T* found, T* result, cudaStream_t stream) {
  grid_loop(d.batch * d.p * d.m, stream, [=] __device__(int64_t i) {
    const int64_t k = i % d.m, row = i / d.m;
    const T own = static_cast<const T*>(d.a)[i];
    const T* others = static_cast<const T*>(d.b) + row / d.p * d.r * d.m + k;
    T sum = 0;
    for (int64_t j = 0; j < d.r; ++j)
      sum += Norm::slope(own - others[j * d.m], grads[row * d.r + j], found[row * d.r + j], static_cast<T>(d.norm));
    result[i] = sum;
  });
}
template <class Norm, class T>
void pair_grid(const PairDistances d, T* result, cudaStream_t stream) {
  grid_loop(d.n * (d.n - 1) / 2, stream, [=] __device__(int64_t i) {
    const RowPair at = row_pair(i, d.n);
    const T* a = static_cast<const T*>(d.a);
    result[i] = distance_of<Norm, T>(a + at.i * d.m, a + at.j * d.m, d.m, static_cast<T>(d.norm));
  });
}
template <class Norm, class T>
void pair_slope_grid(const PairDistances d, const T* grads, const T* found, T* result, cudaStream_t stream) {
  grid_loop(d.n * d.m, stream, [=] __device__(int64_t i) {
    const int64_t k = i % d.m, row = i / d.m;
    const T* a = static_cast<const T*>(d.a);
    T sum = 0;
    for (int64_t j = 0; j < d.n; ++j) {
      if (j == row) continue;
      const int64_t first = j < row ? j : row, second = j < row ? row : j;
      const int64_t pair = first * (2 * d.n - first - 1) / 2 + second - first - 1;
      const T slope =
          Norm::slope(a[first * d.m + k] - a[second * d.m + k], grads[pair], found[pair], static_cast<T>(d.norm));
      sum += j < row ? -slope : slope;
    }
    result[i] = sum;
  });
}

template <class T>
cudaError_t distances_as(const Distances& distances, void* result, cudaStream_t stream) {
  const Distances d = distances;
  with_norm<T>(d.norm, [&](auto norm) {
    using Norm = decltype(norm);
    distance_grid<Norm, T>(d, static_cast<T*>(result), stream);
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t slopes_as(const Distances& distances, const void* grads, const void* found, void* result,
                      cudaStream_t stream) {
  with_slope<T>(distances.norm, [&](auto norm) {
    using Norm = decltype(norm);
    slope_grid<Norm, T>(distances, static_cast<const T*>(grads), static_cast<const T*>(found), static_cast<T*>(result),
                        stream);
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t pairs_as(const PairDistances& pairs, void* result, cudaStream_t stream) {
  with_norm<T>(pairs.norm, [&](auto norm) {
    using Norm = decltype(norm);
    pair_grid<Norm, T>(pairs, static_cast<T*>(result), stream);
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t pair_slopes_as(const PairDistances& pairs, const void* grads, const void* found, void* result,
                           cudaStream_t stream) {
  with_slope<T>(pairs.norm, [&](auto norm) {
    using Norm = decltype(norm);
    pair_slope_grid<Norm, T>(pairs, static_cast<const T*>(grads), static_cast<const T*>(found), static_cast<T*>(result),
                             stream);
  });
  return cudaGetLastError();
}

constexpr int kThreads = 256;

// One block per row or, with kShort, one warp.
template <class T, int kAtOnce, bool kShort>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNorm n) {
  using C = Compute<T>;
  constexpr int kWarps = kThreads / 32, kRows = kShort ? kWarps : 1, kStep = (kShort ? 32 : kThreads) * kAtOnce;
  __shared__ C shared[kWarps];
  const int first = static_cast<int>(kShort ? threadIdx.x % 32 : threadIdx.x) * kAtOnce;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + (kShort ? threadIdx.x / 32 : 0); row < n.rows;
       row += static_cast<int64_t>(gridDim.x) * kRows) {
    const T* x = static_cast<const T*>(n.x) + row * n.length;
    C sum = 0;
    for (int64_t i = first; i < n.length; i += kStep) {
      const auto values = *reinterpret_cast<const Pack<T, kAtOnce>*>(x + i);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const C value = widened(values.at[k]);
        sum += value * value;
      }
    }
    sum = warp_sum(sum);
    if (!kShort) {
      if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
      __syncthreads();
      sum = 0;
      for (int i = 0; i < kWarps; ++i) sum += shared[i];
    }
    const C root = rsqrt(sum / static_cast<C>(n.length) + static_cast<C>(n.epsilon));
    if (first == 0) static_cast<C*>(n.roots)[row] = root;
    const C* weight = static_cast<const C*>(n.weight);
    T* y = static_cast<T*>(n.y) + row * n.length;
    for (int64_t i = first; i < n.length; i += kStep) {
      const auto values = *reinterpret_cast<const Pack<T, kAtOnce>*>(x + i);
      Pack<C, kAtOnce> factors;
      if (weight) factors = *reinterpret_cast<const Pack<C, kAtOnce>*>(weight + i);
      Pack<T, kAtOnce> result;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const C value = widened(values.at[k]) * root;
        result.at[k] = narrowed<T>(weight ? value * factors.at[k] : value);
      }
      *reinterpret_cast<Pack<T, kAtOnce>*>(y + i) = result;
    }
    if (!kShort) __syncthreads();
  }
}
template <class T, int kAtOnce>
void rms_norm_by(const RmsNorm& norm, cudaStream_t stream) {
  constexpr int64_t kMostBlocks = 1 << 20, kShortest = 1024, kRows = kThreads / 32;
  const bool brief = norm.length <= kShortest;
  const int64_t blocks = brief ? (norm.rows + kRows - 1) / kRows : norm.rows;
  const auto grid = static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
  if (brief)
    rms_norm_kernel<T, kAtOnce, true><<<grid, kThreads, 0, stream>>>(norm);
  else
    rms_norm_kernel<T, kAtOnce, false><<<grid, kThreads, 0, stream>>>(norm);
}
template <class T>
cudaError_t rms_norm_as(const RmsNorm& norm, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  const auto aligned = [](const void* data, size_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; };
  if (norm.rows == 0) return cudaSuccess;
  if (norm.length % kAtOnce == 0 && aligned(norm.x, 16) && aligned(norm.y, 16) &&
      aligned(norm.weight, kAtOnce * sizeof(Compute<T>)))
    rms_norm_by<T, kAtOnce>(norm, stream);
  else
    rms_norm_by<T, 1>(norm, stream);
  return cudaGetLastError();
}

template <class T>
cudaError_t activation_as(void* x, int64_t count, bool gelu, cudaStream_t stream) {
  T* data = static_cast<T*>(x);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const C v = widened(data[i]);
    C result = v;
    if (gelu) {
      constexpr C kBeta = static_cast<C>(0.7978845608028654), kKappa = static_cast<C>(0.044715);
      result = C(0.5) * v * (C(1) + tanh(kBeta * (v + kKappa * v * v * v)));
    } else if (v < 0) {
      result = 0;
    }
    data[i] = narrowed<T>(result);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_distances(const Distances& distances, void* result, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_SINGLE_DOUBLE_CASES(distances_as, distances, result, stream));
}

cudaError_t launch_distance_slopes(const Distances& distances, const void* grads, const void* found, void* result,
                                   int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_SINGLE_DOUBLE_CASES(slopes_as, distances, grads, found, result, stream));
}
cudaError_t launch_pair_distances(const PairDistances& pairs, void* result, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_SINGLE_DOUBLE_CASES(pairs_as, pairs, result, stream));
}
cudaError_t launch_pair_slopes(const PairDistances& pairs, const void* grads, const void* found, void* result,
                               int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_SINGLE_DOUBLE_CASES(pair_slopes_as, pairs, grads, found, result, stream));
}

cudaError_t launch_rms_norm(const RmsNorm& norm, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(rms_norm_as, norm, stream));
}

cudaError_t launch_activation(void* x, int64_t count, bool gelu, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(activation_as, x, count, gelu, stream));
}

}  // namespace sconce::cuda
