// Elements moved and converted between tensors of one device. Host code calls, device code does.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int kMaxCopyRank = 16;

// As StridedLoop has it: [0] innermost, strides in bytes.
struct CopyShape {
  int rank = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxCopyRank];
  int64_t to[kMaxCopyRank], from[kMaxCopyRank];
};

// Numbers are those of c10::ScalarType. Conversion is at::Tensor::copy_'s.
void launch_copy(const CopyShape& shape, void* to, int to_dtype, const void* from, int from_dtype, cudaStream_t stream);
// The same dtype: bytes per element 1, 2, 4, 8 or 16.
void launch_move(const CopyShape& shape, void* to, const void* from, int itemsize, cudaStream_t stream);
// Every element becomes that one.
void launch_fill(const CopyShape& shape, void* to, const void* element, int itemsize, cudaStream_t stream);

}  // namespace sconce::cuda
