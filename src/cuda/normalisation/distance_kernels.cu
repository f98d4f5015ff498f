#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/normalisation/distance_kernels.h"
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

}  // namespace sconce::cuda
