#include "src/cuda/device_types.cuh"
#include "src/cuda/grid_loop.cuh"
#include "src/cuda/row_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
cudaError_t distances_as(const Distances& distances, void* result, cudaStream_t stream) {
  const Distances d = distances;
  const T norm = static_cast<T>(d.norm);
  const bool largest = isinf(d.norm);
  grid_loop(d.batch * d.p * d.r, stream, [=] __device__(int64_t i) {
    const int64_t column = i % d.r, row = i / d.r, batch = row / d.p;
    const T* a = static_cast<const T*>(d.a) + row * d.m;
    const T* b = static_cast<const T*>(d.b) + (batch * d.r + column) * d.m;
    T sum = 0;
    for (int64_t k = 0; k < d.m; ++k) {
      const T size = fabs(a[k] - b[k]);
      if (largest)
        sum = sum < size || size != size ? size : sum;
      else if (norm == 0)
        sum += size != size ? size : static_cast<T>(size > 0);
      else if (norm == 1)
        sum += size;
      else if (norm == 2)
        sum += size * size;
      else
        sum += pow(size, norm);
    }
    if (norm == 2)
      sum = sqrt(sum);
    else if (norm != 0 && norm != 1 && !largest)
      sum = pow(sum, T(1) / norm);
    static_cast<T*>(result)[i] = sum;
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
