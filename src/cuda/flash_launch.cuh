// Launches of flash_kernel by number of elements a head: one translation unit a dtype.
#pragma once

#include <atomic>

#include "src/cuda/flash_attention.cuh"
#include "src/cuda/flash_forms.h"

namespace sconce::cuda {

template <class T, int kDim, int kTiles, bool kFew = false>
cudaError_t launch_flash_form(const FlashAttention& a, cudaStream_t stream) {
  constexpr int kKeys = flash_keys(sizeof(T), kDim);
  constexpr int kRows = kFew ? kFlashFew : 64 * kTiles;
  constexpr int kBytes =
      kFew ? flash_few_shared_bytes(sizeof(T), kDim) : flash_shared_bytes(sizeof(T), kDim, kTiles);
  const auto kernel = flash_kernel<T, kDim, kTiles, kKeys, kFew>;
  // More than 48 kB have to be asked for, once a device.
  static std::atomic<uint64_t> asked{0};
  int device = 0;
  cudaGetDevice(&device);
  const uint64_t bit = uint64_t{1} << (device % 64);
  if (!(asked.load(std::memory_order_relaxed) & bit)) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != cudaSuccess) return error;
    asked.fetch_or(bit, std::memory_order_relaxed);
  }
  const int blocks = (a.queries + kRows - 1) / kRows;
  const dim3 grid(static_cast<unsigned>(blocks) * static_cast<unsigned>(a.batch) * static_cast<unsigned>(a.heads),
                  static_cast<unsigned>(a.splits));
  kernel<<<grid, kFlashThreads, kBytes, stream>>>(a);
  if (a.splits > 1) {
    const int64_t rows = static_cast<int64_t>(a.batch) * a.heads * a.queries;
    flash_combine_kernel<T><<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(a);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_flash_of(const FlashAttention& a, cudaStream_t stream) {
  if (a.few)
    return flash_dim(a.d, a.dv) == 64 ? launch_flash_form<T, 64, 1, true>(a, stream)
                                      : launch_flash_form<T, 128, 1, true>(a, stream);
  switch (flash_dim(a.d, a.dv)) {
    case 64:
      return a.tiles == 2 ? launch_flash_form<T, 64, 2>(a, stream) : launch_flash_form<T, 64, 1>(a, stream);
    case 128:
      return a.tiles == 2 ? launch_flash_form<T, 128, 2>(a, stream) : launch_flash_form<T, 128, 1>(a, stream);
    default:
      return launch_flash_form<T, 256, 1>(a, stream);
  }
}
template <>
inline cudaError_t launch_flash_of<float>(const FlashAttention& a, cudaStream_t stream) {
  switch (flash_dim(a.d, a.dv)) {
    case 64:
      return launch_flash_form<float, 64, 1>(a, stream);
    case 128:
      return launch_flash_form<float, 128, 1>(a, stream);
    default:
      return launch_flash_form<float, 256, 1>(a, stream);
  }
}

}  // namespace sconce::cuda
