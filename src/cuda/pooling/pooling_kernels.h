// Pooling on a device, for host code. dtype: c10::ScalarType of the elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// PoolAxis of src/cpu/pooling/pooling_plan.h, for device code.
struct PoolLine {
  int64_t input, output, kernel, stride, padding, dilation;
  bool adaptive;
};

// Planes of depth, height and width. Strides in elements for batch, channel, depth, height and width. channels_last
// gives the order in which elements are visited.
struct PoolWalk {
  PoolLine lines[3];
  int64_t batch, channels;
  int64_t pooled[5], whole[5], indices[5];  // strides: pooled side, other side, indices
  bool channels_last;
  bool stray_indices;  // max gradients: add indices outside their window's reach too
};

// cudaErrorNotSupported for dtypes that are not floating; launch_max_pool also takes integers.
cudaError_t launch_max_pool(const PoolWalk& walk, int dtype, const void* in, void* out, int64_t* indices,
                            cudaStream_t stream);
// divisor: 0 means the window's size, with or without padding.
cudaError_t launch_average_pool(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding,
                                int64_t divisor, cudaStream_t stream);
// Each input element gathers from its windows in a fixed order. `out` is dense.
cudaError_t launch_max_pool_backward(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices,
                                     void* out, cudaStream_t stream);
cudaError_t launch_average_pool_backward(const PoolWalk& walk, int dtype, const void* grad, void* out,
                                         bool include_padding, int64_t divisor, cudaStream_t stream);
// out[plane][indices[plane][i]] = in[plane][i], packed; notes an index outside the plane.
void launch_unpool(int itemsize, const void* in, const int64_t* indices, void* out, int64_t planes, int64_t plane,
                   int64_t out_plane, int* noted, int note, cudaStream_t stream);

// Windows over depth, height and width; samples [planes, dims] decide where they begin.
struct FractionalWalk {
  int64_t planes;
  int64_t input[3], output[3], kernel[3];
  int dims;
};
cudaError_t launch_fractional_pool(const FractionalWalk& walk, int dtype, const void* in, const void* samples,
                                   void* out, int64_t* indices, cudaStream_t stream);

}  // namespace sconce::cuda
