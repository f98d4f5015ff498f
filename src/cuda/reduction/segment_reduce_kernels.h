// Reductions of segments on a device, for host code. dtype: c10::ScalarType; cudaErrorNotSupported unless floating.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// Like SegmentReduction of src/cpu/reduction/segment_reduce.h.
enum class SegmentKind { kMax, kMean, kMin, kSum, kProduct };

// data [outer, size, inner] and bounds [outer, count + 1] are packed; segment s of row o is [bounds[o][s],
// bounds[o][s+1]).
struct SegmentCall {
  SegmentKind kind;
  int dtype;
  int64_t outer, count, size, inner;
  const void* data;
  const int64_t* bounds;
  bool has_initial;
  double initial;
  int* noted;  // set if bounds descend or lie outside
  int note;
};
cudaError_t launch_segments(const SegmentCall& call, void* out, cudaStream_t stream);
// `out` [outer, size, inner] is zeroed before.
cudaError_t launch_segment_slopes(const SegmentCall& call, const void* grads, const void* results, void* out,
                                  cudaStream_t stream);
// Makes bounds from lengths, whose inclusive sums are [outer, count].
void launch_segment_bounds(const int64_t* sums, int64_t outer, int64_t count, int64_t* bounds, cudaStream_t stream);

}  // namespace sconce::cuda
