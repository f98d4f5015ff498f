// Launches of flash_kernel by number of elements a head: one translation unit a dtype.
#pragma once

#include <atomic>

#include "src/cuda/flash_attention.cuh"
#include "src/cuda/flash_forms.h"

namespace sconce::cuda {

template <class T, int kDim, int kTiles>
cudaError_t launch_flash_form(const FlashAttention& a, cudaStream_t stream) {
  constexpr int kKeys = flash_keys(sizeof(T), kDim);
  using Tile = typename FlashTileOf<T, kDim, kTiles, kKeys>::Type;
  static_assert(Tile::kSharedBytes == flash_shared_bytes(sizeof(T), kDim, kTiles));
  const auto kernel = flash_kernel<T, kDim, kTiles, kKeys>;
  // More than 48 kB have to be asked for, once a device.
  static std::atomic<uint64_t> asked{0};
  int device = 0;
  cudaGetDevice(&device);
  const uint64_t bit = uint64_t{1} << (device % 64);
  if (!(asked.load(std::memory_order_relaxed) & bit)) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes);
    if (error != cudaSuccess) return error;
    asked.fetch_or(bit, std::memory_order_relaxed);
  }
  const int blocks = (a.queries + Tile::kRows - 1) / Tile::kRows;
  const dim3 grid(static_cast<unsigned>(blocks) * static_cast<unsigned>(a.batch) * static_cast<unsigned>(a.heads),
                  static_cast<unsigned>(a.splits));
  kernel<<<grid, kFlashThreads, Tile::kSharedBytes, stream>>>(a);
  if (a.splits > 1) {
    const int64_t rows = static_cast<int64_t>(a.batch) * a.heads * a.queries;
    flash_combine_kernel<T><<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(a);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_flash_of(const FlashAttention& a, cudaStream_t stream) {
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
