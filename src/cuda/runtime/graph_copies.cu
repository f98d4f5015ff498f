#include <cstdint>

#include "src/cuda/runtime/graph_copies.h"

namespace sconce::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kBytesPerBlock = 16 * kThreads * 4, kMaxBlocks = 1024;

// blockIdx.y numbers the piece.
__global__ void __launch_bounds__(kThreads) copy_pieces(const CopyPieces pieces) {
  const CopyPieces::Piece& piece = pieces.of[blockIdx.y];
  const size_t first = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x,
               step = static_cast<size_t>(gridDim.x) * kThreads;
  const auto from = reinterpret_cast<uintptr_t>(piece.from), to = reinterpret_cast<uintptr_t>(piece.to);
  size_t done = 0;
  if ((from | to) % 16 == 0) {
    const auto* wide_from = static_cast<const uint4*>(piece.from);
    auto* wide_to = static_cast<uint4*>(piece.to);
    for (size_t i = first; i < piece.bytes / 16; i += step) wide_to[i] = wide_from[i];
    done = piece.bytes / 16 * 16;
  } else if ((from | to) % 4 == 0) {
    const auto* word_from = static_cast<const uint32_t*>(piece.from);
    auto* word_to = static_cast<uint32_t*>(piece.to);
    for (size_t i = first; i < piece.bytes / 4; i += step) word_to[i] = word_from[i];
    done = piece.bytes / 4 * 4;
  }
  for (size_t i = done + first; i < piece.bytes; i += step)
    static_cast<unsigned char*>(piece.to)[i] = static_cast<const unsigned char*>(piece.from)[i];
}

dim3 grid_of(const CopyPieces& pieces, int count) {
  size_t most = 1;
  for (int i = 0; i < count; ++i) most = pieces.of[i].bytes > most ? pieces.of[i].bytes : most;
  const size_t blocks = (most + kBytesPerBlock - 1) / kBytesPerBlock;
  return dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), static_cast<unsigned>(count));
}

}  // namespace

cudaKernelNodeParams copy_node(const CopyPieces& pieces, int count, void** argument) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(&copy_pieces);
  params.gridDim = grid_of(pieces, count);
  params.blockDim = dim3(kThreads);
  *argument = const_cast<CopyPieces*>(&pieces);
  params.kernelParams = argument;
  return params;
}

void launch_copies(const CopyPieces& pieces, int count, cudaStream_t stream) {
  copy_pieces<<<grid_of(pieces, count), kThreads, 0, stream>>>(pieces);
}

}  // namespace sconce::cuda
