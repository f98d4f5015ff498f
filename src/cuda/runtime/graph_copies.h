// Pieces of memory copied by one kernel, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace sconce::cuda {

constexpr int kPiecesAtOnce = 32;

// By value in a kernel's arguments.
struct CopyPieces {
  struct Piece {
    const void* from;
    void* to;
    size_t bytes;
  } of[kPiecesAtOnce];
};

// How the kernel is launched for these; params.kernelParams points to `argument`, which points to `pieces`.
cudaKernelNodeParams copy_node(const CopyPieces& pieces, int count, void** argument);
void launch_copies(const CopyPieces& pieces, int count, cudaStream_t stream);

}  // namespace sconce::cuda
