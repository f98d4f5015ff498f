// Indexing with tensors on a device, for host code. Strides are in bytes; dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int kMaxIndexRank = 8;

// The elements that index tensors select, as in IndexPlan.
struct IndexWalk {
  int rank = 0, count = 0;  // count: index tensors; rank: dimensions of positions
  int64_t positions = 1;
  int64_t sizes[kMaxIndexRank], other[kMaxIndexRank];
  const char* index[kMaxIndexRank];  // int64
  int64_t index_strides[kMaxIndexRank][kMaxIndexRank];
  int64_t indexed_sizes[kMaxIndexRank], indexed_strides[kMaxIndexRank];
  // The dimensions that are not indexed.
  int rest_rank = 0;
  int64_t rest = 1;
  int64_t rest_sizes[kMaxIndexRank], rest_other[kMaxIndexRank], rest_self[kMaxIndexRank];
  int* noted;
  int note;
};
// to_self: copies other into self, else self into other.
void launch_index(const IndexWalk& walk, char* self, char* other, int itemsize, bool to_self, cudaStream_t stream);
// Writes the offset in self, in units of `unit` bytes, and the number of each position; -1 for an index out of bounds.
// key_bytes: 4 or 8.
void launch_index_keys(const IndexWalk& walk, int64_t unit, int key_bytes, void* keys, int64_t* numbers,
                       cudaStream_t stream);
// self += other, in the order of the positions' numbers; keys and numbers are sorted by key.
void launch_index_add(const IndexWalk& walk, char* self, const char* other, int dtype, int64_t unit, int key_bytes,
                      const void* keys, const int64_t* numbers, cudaStream_t stream);

// For each element of `index`: the element of out that has this index as its coordinate along dim.
struct ScatterWalk {
  int rank = 0, dim = 0;
  int64_t count = 1, size = 0;  // elements of index; size of out along dim
  int64_t sizes[kMaxIndexRank];
  int64_t index[kMaxIndexRank], src[kMaxIndexRank], out[kMaxIndexRank];
  const char* indices;  // int64
  int* noted;
  int note;
};
enum class ScatterReduce { kSum, kProduct, kMost, kLeast };
void launch_scatter(const ScatterWalk& walk, char* out, const char* src, int itemsize, cudaStream_t stream);
void launch_scatter_value(const ScatterWalk& walk, char* out, const void* element, int itemsize, cudaStream_t stream);
void launch_scatter_reduce(const ScatterWalk& walk, char* out, const char* src, int dtype, ScatterReduce reduce,
                           cudaStream_t stream);
// Counts the elements that arrive at each place; counts is packed int64 and walk.out has its strides.
void launch_scatter_count(const ScatterWalk& walk, char* counts, cudaStream_t stream);
// out[i] /= counts[i] unless counts[i] is 0; packed; integers round down.
void launch_divide_by_counts(char* out, int dtype, const int64_t* counts, int64_t count, cudaStream_t stream);

}  // namespace sconce::cuda
