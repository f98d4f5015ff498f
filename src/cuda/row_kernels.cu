#include "src/cuda/device_types.cuh"
#include "src/cuda/grid_loop.cuh"
#include "src/cuda/row_kernels.h"
#include "src/ops/distance_norms.h"

namespace sconce::cuda {
namespace {

template <class Norm, class T>
__device__ T distance_of(const T* a, const T* b, int64_t m, T p) {
  T sum = 0;
  for (int64_t k = 0; k < m; ++k) sum = Norm::join(sum, Norm::map(fabs(a[k] - b[k]), p));
  return Norm::finish(sum, p);
}

template <class Norm, class T>
void distance_grid(const Distances d, T* result, cudaStream_t stream) {
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

template <class T, class C>
__global__ void rms_norm_kernel(RmsNorm n) {
  __shared__ C shared[kThreads / 32];
  for (int64_t row = blockIdx.x; row < n.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(n.x) + row * n.length;
    C sum = 0;
    for (int64_t i = threadIdx.x; i < n.length; i += kThreads) {
      const C value = widened(x[i]);
      sum += value * value;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < kThreads / 32; ++i) sum += shared[i];
    const C root = rsqrt(sum / static_cast<C>(n.length) + static_cast<C>(n.epsilon));
    if (threadIdx.x == 0) static_cast<C*>(n.roots)[row] = root;
    const C* weight = static_cast<const C*>(n.weight);
    T* y = static_cast<T*>(n.y) + row * n.length;
    for (int64_t i = threadIdx.x; i < n.length; i += kThreads) {
      const C value = widened(x[i]) * root;
      y[i] = narrowed<T>(weight ? value * weight[i] : value);
    }
    __syncthreads();
  }
}
template <class T>
cudaError_t rms_norm_as(const RmsNorm& norm, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(norm.rows < (1 << 20) ? norm.rows : 1 << 20);
  if (blocks > 0) rms_norm_kernel<T, Compute<T>><<<blocks, kThreads, 0, stream>>>(norm);
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
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, distances_as, distances, result, stream)
    SCONCE_DTYPE_CASE(7, double, distances_as, distances, result, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_distance_slopes(const Distances& distances, const void* grads, const void* found, void* result,
                                   int dtype, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, slopes_as, distances, grads, found, result, stream)
    SCONCE_DTYPE_CASE(7, double, slopes_as, distances, grads, found, result, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_pair_distances(const PairDistances& pairs, void* result, int dtype, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, pairs_as, pairs, result, stream)
    SCONCE_DTYPE_CASE(7, double, pairs_as, pairs, result, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_pair_slopes(const PairDistances& pairs, const void* grads, const void* found, void* result,
                               int dtype, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, pair_slopes_as, pairs, grads, found, result, stream)
    SCONCE_DTYPE_CASE(7, double, pair_slopes_as, pairs, grads, found, result, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_rms_norm(const RmsNorm& norm, int dtype, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(rms_norm_as, norm, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_activation(void* x, int64_t count, bool gelu, int dtype, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(activation_as, x, count, gelu, stream)
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace sconce::cuda
