// Bags of embedding rows on a device, for host code. Indices, offsets and bags are int64. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

enum class BagMode { kSum, kMean, kMax };

struct BagCall {
  int dtype;
  BagMode mode;
  const void* weight;  // [rows, columns], strides in elements
  int64_t rows, columns, row_stride, column_stride;
  const int64_t *indices, *offsets;  // [n]; [bags] or more
  const void* scales;                // null: none; [n]
  int64_t n, bags, padding;
  void* out;           // [bags, columns]
  int64_t* bag_sizes;  // [bags]
  int64_t* taken;      // kMax: [bags, columns]
  int64_t* bag_of;     // [n]
  int* noted;          // receives a note about an index or offset out of range
  int note;
};
cudaError_t launch_bags(const BagCall& call, cudaStream_t stream);

// Adds gradients [bags, columns] by row, in any order, into `sums` [rows, columns] (float32 or float64), which the
// caller has zeroed. Row and bag numbers out of range are noted.
struct BagGradient {
  int dtype;  // of grad and scales
  BagMode mode;
  const void* grad;
  int64_t bags, columns, n, rows, padding;
  const int64_t *indices, *bag_of, *bag_sizes;  // [n], [n], [bags]
  const int64_t* taken;                         // kMax: [bags, columns]
  const void* scales;                           // null: none
  int64_t* occurrences;                         // null, or zeroed [rows]; gradients are divided by these counts
  void* sums;
  int* noted;
  int note;
};
cudaError_t launch_bag_gradient(const BagGradient& call, cudaStream_t stream);
// out[i] = grad[bag_of[i]] . weight[indices[i]], 0 for padding; all packed and of one dtype.
cudaError_t launch_scale_gradient(const BagGradient& call, const void* weight, void* out, cudaStream_t stream);
// Writes the bag of each of n indices, from `bags` > 0 offsets.
void launch_bag_of(const int64_t* offsets, int64_t bags, int64_t n, int64_t* bag_of, cudaStream_t stream);

}  // namespace sconce::cuda
