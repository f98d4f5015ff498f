// The tensors of a convolution for its inner loops: pointers and strides.
#pragma once

#include <cstdint>

#include "src/cpu/vector/post_ops.h"
#include "src/tensor/spatial/convolution_shape.h"

namespace sconce {

struct BlockedWeight;  // src/cpu/onednn/mkldnn_weight.h

// Strides in elements. Dimensions that a convolution lacks have size 1 and any stride.
struct ActivationView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t batch = 0, channel = 0;
  Dims3 pixel{};
};

struct WeightView {
  const BlockedWeight* blocked = nullptr;  // the packed form of data; the strides are those of its row-major form
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t group = 0, out = 0, in = 0;
  Dims3 kernel{};
};

struct ConvolutionOperands {
  ActivationView input;
  WeightView weight;
  const Tensor* bias = nullptr;  // [O], any floating dtype for floating inputs, else the input's
  Fusion fusion;
  ActivationView other;         // fusion.other in the output's layout
  Storage* constant = nullptr;  // storage of the weight if its bytes never change
};

ActivationView activation_view(const Tensor& tensor);
// Plain weights: [O, C/groups, ...], transposed [C, O/groups, ...].
WeightView weight_view(const ConvolutionShape& shape, const Tensor& weight);
// Packed ones; their dimensions are the shape's.
WeightView blocked_view(const ConvolutionShape& shape, const BlockedWeight& blocked, const void* data);
// A tensor that broadcasts to the output. kInvalidArgument "NAME: ..." if it does not.
ActivationView fusion_view(std::string_view name, const ConvolutionShape& shape, const Tensor& other);

// The same weights as float32; `keep` holds the copy if one is needed.
WeightView float_weight(const ConvolutionShape& shape, const WeightView& weight, Tensor& keep);

}  // namespace sconce
