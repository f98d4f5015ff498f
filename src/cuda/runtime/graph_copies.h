// One kernel that copies several pieces of memory; callable from host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace sconce::cuda {

constexpr int kPiecesAtOnce = 32;

// Passed by value as the kernel's argument.
struct CopyPieces {
  struct Piece {
    const void* from;
    void* to;
    size_t bytes;
  } of[kPiecesAtOnce];
};

// Launch parameters for these pieces. params.kernelParams points to `argument`, which points to `pieces`.
cudaKernelNodeParams copy_node(const CopyPieces& pieces, int count, void** argument);
void launch_copies(const CopyPieces& pieces, int count, cudaStream_t stream);

}  // namespace sconce::cuda
