#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/reduction/sum_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

// The type that holds a sum.
template <class C>
struct Total {
  using Type = int64_t;
};
template <>
struct Total<float> {
  using Type = double;
};
template <>
struct Total<double> {
  using Type = double;
};
template <class T>
struct Total<thrust::complex<T>> {
  using Type = thrust::complex<double>;
};

template <class T>
__device__ void narrow_to(T* to, int64_t total, double) {
  *to = static_cast<T>(total);
}
template <class T>
__device__ void narrow_to(T* to, double total, double divisor) {
  *to = narrowed<T>(static_cast<Compute<T>>(total / divisor));
}
template <class T>
__device__ void narrow_to(T* to, thrust::complex<double> total, double divisor) {
  *to = narrowed<T>(static_cast<Compute<T>>(total / divisor));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(const T* in, int64_t rows, int64_t width, double divisor, T* sums) {
  using Sum = typename Total<Compute<T>>::Type;
  __shared__ alignas(16) unsigned char memory[kThreads * sizeof(Sum)];
  Sum* const shared = reinterpret_cast<Sum*>(memory);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Sum sum = Sum(0);
    for (int64_t i = threadIdx.x; i < width; i += kThreads) sum += static_cast<Sum>(widened(in[row * width + i]));
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) narrow_to(sums + row, shared[0], divisor);
    __syncthreads();
  }
}

template <class T>
cudaError_t row_sums(const void* in, int64_t rows, int64_t width, double divisor, void* sums, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(rows < (1 << 20) ? rows : 1 << 20);
  row_sums_kernel<T>
      <<<blocks, kThreads, 0, stream>>>(static_cast<const T*>(in), rows, width, divisor, static_cast<T*>(sums));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_row_sums(const void* in, int dtype, int64_t rows, int64_t width, double divisor, void* sums,
                            cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(row_sums, in, rows, width, divisor, sums, stream)
                                    SCONCE_COMPLEX_CASES(row_sums, in, rows, width, divisor, sums, stream));
}

}  // namespace sconce::cuda
