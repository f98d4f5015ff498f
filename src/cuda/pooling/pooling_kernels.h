// Pooling on a device, for host code. dtype: c10::ScalarType of the elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// As PoolAxis of src/cpu/pooling/pooling_plan.h.
struct PoolLine {
  int64_t input, output, kernel, stride, padding, dilation;
  bool adaptive;
};

// Planes of depth, height and width. Strides in elements by batch, channel, depth, height, width; the one after
// channels-last tells in what order elements are visited.
struct PoolWalk {
  PoolLine lines[3];
  int64_t batch, channels;
  int64_t pooled[5], whole[5], indices[5];  // strides of the pooled side, of the other, of the indices
  bool channels_last;
  bool stray_indices;  // gradients of maxima: indices of elements that their windows do not reach count, too
};

// cudaErrorNotSupported for other dtypes than floating ones; maxima also of integers.
cudaError_t launch_max_pool(const PoolWalk& walk, int dtype, const void* in, void* out, int64_t* indices,
                            cudaStream_t stream);
// divisor: 0 for the window's size, with padding or without.
cudaError_t launch_average_pool(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding,
                                int64_t divisor, cudaStream_t stream);
// Each input element gathers from the windows that it is in: always in the same order. `out` is dense.
cudaError_t launch_max_pool_backward(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices,
                                     void* out, cudaStream_t stream);
cudaError_t launch_average_pool_backward(const PoolWalk& walk, int dtype, const void* grad, void* out,
                                         bool include_padding, int64_t divisor, cudaStream_t stream);
// out[plane][indices[plane][i]] = in[plane][i], packed; an index outside of the plane is noted.
void launch_unpool(int itemsize, const void* in, const int64_t* indices, void* out, int64_t planes, int64_t plane,
                   int64_t out_plane, int* noted, int note, cudaStream_t stream);

// Depth, height and width of windows that begin at places drawn from samples [planes, dims].
struct FractionalWalk {
  int64_t planes;
  int64_t input[3], output[3], kernel[3];
  int dims;
};
cudaError_t launch_fractional_pool(const FractionalWalk& walk, int dtype, const void* in, const void* samples,
                                   void* out, int64_t* indices, cudaStream_t stream);

}  // namespace sconce::cuda
