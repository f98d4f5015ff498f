// Moves and converts elements between tensors of one device. Callable from host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int kMaxCopyRank = 16;

// Like StridedLoop: dimension 0 is the innermost, strides are in bytes.
struct CopyShape {
  int rank = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxCopyRank];
  int64_t to[kMaxCopyRank], from[kMaxCopyRank];
};

// dtypes are numbers of c10::ScalarType. Converts as at::Tensor::copy_ does.
void launch_copy(const CopyShape& shape, void* to, int to_dtype, const void* from, int from_dtype, cudaStream_t stream);
// Between equal dtypes: itemsize is 1, 2, 4, 8 or 16 bytes.
void launch_move(const CopyShape& shape, void* to, const void* from, int itemsize, cudaStream_t stream);
// Sets every element to `element`.
void launch_fill(const CopyShape& shape, void* to, const void* element, int itemsize, cudaStream_t stream);

}  // namespace sconce::cuda
