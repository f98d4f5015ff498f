// Launches flash_kernel and flash_few_kernel by elements per head; one translation unit per dtype.
#pragma once

#include <atomic>

#include "src/cuda/attention/flash/flash_attention.cuh"
#include "src/cuda/attention/flash/flash_few.cuh"
#include "src/cuda/attention/flash/flash_forms.h"
#include "src/cuda/device_code/early_start.cuh"

namespace sconce::cuda {

template <class T>
void launch_combine(const FlashAttention& a, cudaStream_t stream) {
  constexpr int kRows = kCombineThreads / 32;
  const int64_t rows = static_cast<int64_t>(a.batch) * a.heads * a.queries;
  const auto blocks = static_cast<unsigned>((rows + kRows - 1) / kRows);
  launch_early(a.early, flash_combine_kernel<T>, blocks, kCombineThreads, a, stream);
}

inline dim3 flash_grid(const FlashAttention& a, int rows) {
  return {static_cast<unsigned>((a.queries + rows - 1) / rows) * static_cast<unsigned>(a.batch) *
              static_cast<unsigned>(a.heads),
          static_cast<unsigned>(a.splits)};
}

template <class T, int kDim, int kTiles, bool kBiased>
cudaError_t launch_flash_form(const FlashAttention& a, cudaStream_t stream) {
  constexpr int kKeys = flash_keys(sizeof(T), kDim);
  constexpr int kBytes = flash_shared_bytes(sizeof(T), kDim, kTiles, kBiased);
  const auto kernel = flash_kernel<T, kDim, kTiles, kKeys, kBiased>;
  // CUDA grants more than 48 kB only on request, once per device.
  static std::atomic<uint64_t> asked{0};
  int device = 0;
  cudaGetDevice(&device);
  const uint64_t bit = uint64_t{1} << (device % 64);
  if (!(asked.load(std::memory_order_relaxed) & bit)) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != cudaSuccess) return error;
    asked.fetch_or(bit, std::memory_order_relaxed);
  }
  kernel<<<flash_grid(a, 64 * kTiles), kFlashThreads, kBytes, stream>>>(a);
  if (a.splits > 1) launch_combine<T>(a, stream);
  return cudaGetLastError();
}

template <class T, int kDim, int kQueryTiles>
cudaError_t launch_flash_few(const FlashAttention& a, cudaStream_t stream) {
  constexpr int kKeyTiles = flash_few_keys(kDim) / 16;
  launch_early(a.early, flash_few_kernel<T, kDim, kQueryTiles, kKeyTiles>,
               flash_grid(a, flash_few_queries(kQueryTiles)), kFlashThreads, a, stream);
  if (a.splits > 1) launch_combine<T>(a, stream);
  return cudaGetLastError();
}

template <class T, int kDim, int kTiles>
cudaError_t launch_flash_tiles(const FlashAttention& a, cudaStream_t stream) {
  return a.bias ? launch_flash_form<T, kDim, kTiles, true>(a, stream)
                : launch_flash_form<T, kDim, kTiles, false>(a, stream);
}

template <class T>
cudaError_t launch_flash_of(const FlashAttention& a, cudaStream_t stream) {
  const int dim = flash_dim(a.d, a.dv);
  if constexpr (sizeof(T) == 2) {
    if (a.few && dim == 64)
      return a.tiles == 1 ? launch_flash_few<T, 64, 1>(a, stream) : launch_flash_few<T, 64, 2>(a, stream);
    if (a.few) return a.tiles == 1 ? launch_flash_few<T, 128, 1>(a, stream) : launch_flash_few<T, 128, 2>(a, stream);
    if (a.tiles == 2 && dim == 64) return launch_flash_tiles<T, 64, 2>(a, stream);
  }
  if (a.tiles == 2) return launch_flash_tiles<T, 128, 2>(a, stream);
  return dim == 64    ? launch_flash_tiles<T, 64, 1>(a, stream)
         : dim == 128 ? launch_flash_tiles<T, 128, 1>(a, stream)
                      : launch_flash_tiles<T, 256, 1>(a, stream);
}

}  // namespace sconce::cuda
