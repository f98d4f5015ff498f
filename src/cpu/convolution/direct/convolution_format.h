// Whether ATen computes a convolution over channels-last tensors on this CPU, and returns its result in that format.
// Matches ConvParams (aten/src/ATen/native/Convolution.cpp), torch 2.15.
#pragma once

#include "src/tensor/spatial/convolution_shape.h"

namespace sconce {

// Whether ATen would compute this convolution over channels-last tensors; its gradients then have that format.
bool convolution_backend_is_channels_last(const ConvolutionShape& shape, const Tensor& input, const Tensor& weight);
// Whether at::convolution gives its result in a channels-last format.
bool convolution_is_channels_last(const ConvolutionShape& shape, const Tensor& input, const Tensor& weight);

// Whether ATen would use oneDNN for convolutions of this dtype on this CPU.
bool onednn_takes(DType dtype) noexcept;

}  // namespace sconce
