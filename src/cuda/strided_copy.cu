#include "src/cuda/strided_copy.h"

#include "src/cuda/element_sizes.cuh"
#include "src/cuda/elements.cuh"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t numel) {
  const int64_t blocks = (numel + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 65535 * 16 ? blocks : 65535 * 16);
}

__device__ void offsets(const CopyShape& shape, int64_t index, int64_t& to, int64_t& from) {
  to = from = 0;
  for (int d = 0; d < shape.rank; ++d) {
    const int64_t at = index % shape.sizes[d];
    index /= shape.sizes[d];
    to += at * shape.to[d];
    from += at * shape.from[d];
  }
}

__global__ void copy_kernel(CopyShape shape, char* to, int to_dtype, const char* from, int from_dtype) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < shape.numel;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t t, f;
    offsets(shape, i, t, f);
    store(to + t, to_dtype, load(from + f, from_dtype));
  }
}

template <class T>
__global__ void move_kernel(CopyShape shape, char* to, const char* from) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < shape.numel;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t t, f;
    offsets(shape, i, t, f);
    *reinterpret_cast<T*>(to + t) = *reinterpret_cast<const T*>(from + f);
  }
}

template <class T>
__global__ void fill_kernel(CopyShape shape, char* to, T value) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < shape.numel;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t t, f;
    offsets(shape, i, t, f);
    *reinterpret_cast<T*>(to + t) = value;
  }
}

}  // namespace

void launch_copy(const CopyShape& shape, void* to, int to_dtype, const void* from, int from_dtype,
                 cudaStream_t stream) {
  copy_kernel<<<blocks_for(shape.numel), kThreads, 0, stream>>>(shape, static_cast<char*>(to), to_dtype,
                                                                static_cast<const char*>(from), from_dtype);
}

void launch_move(const CopyShape& shape, void* to, const void* from, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    move_kernel<decltype(sample)><<<blocks_for(shape.numel), kThreads, 0, stream>>>(
        shape, static_cast<char*>(to), static_cast<const char*>(from));
  });
}

void launch_fill(const CopyShape& shape, void* to, const void* element, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    __builtin_memcpy(&sample, element, sizeof(sample));
    fill_kernel<<<blocks_for(shape.numel), kThreads, 0, stream>>>(shape, static_cast<char*>(to), sample);
  });
}

}  // namespace sconce::cuda
