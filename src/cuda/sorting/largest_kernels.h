// The ranks of the largest numbers of rows (sconce/device_memory.h). For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

constexpr int kMaxRanks = 128;  // of a row

struct LargestCall {
  int dtype;  // c10::ScalarType: half, float, bfloat16
  const void* in;
  int64_t rows, row_stride, step, length;  // strides in elements; length is above 0 and below 2^32
  int count;                               // of ranks: at most kMaxRanks and the length
  uint64_t* ranks;                         // packed [rows, count], descending; may be pinned memory of the host
};
// Parts of a row that blocks reduce independently, before one block reduces their results.
struct LargestParts {
  int64_t parts, length;  // of a row; elements of a part except the last
};
constexpr LargestParts largest_parts(int64_t length, int count) {
  // One block reads a row of 32,768 numbers in less time than a second kernel takes to start. Selecting more than one
  // number takes longer than reading, so there each block has one tile.
  const int64_t tile = count == 1 ? 16384 : 4096;
  if (length <= (count == 1 ? 2 * tile : tile)) return {1, length};
  constexpr int64_t kMaxParts = 64;
  int64_t parts = (length + tile - 1) / tile;
  if (parts > kMaxParts) parts = kMaxParts;
  const int64_t each = (length + parts - 1) / parts;
  return {(length + each - 1) / each, each};
}
// Bytes of device memory that the launch needs.
inline size_t largest_scratch(const LargestCall& call) {
  const LargestParts parts = largest_parts(call.length, call.count);
  return parts.parts == 1 ? 0 : static_cast<size_t>(call.rows * parts.parts * call.count) * sizeof(uint64_t);
}
// cudaErrorNotSupported for other dtypes.
cudaError_t launch_largest(void* scratch, const LargestCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
