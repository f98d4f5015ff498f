// Reference implementations of convolutions, linear layers and their fused operations: plain loops in double precision.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::testing {

using Ints = std::vector<int64_t>;

// Element at an index, whatever the dtype and strides; opaque tensors have none.
double element(const Tensor& tensor, const Ints& index);
void set_element(Tensor& tensor, const Ints& index, double value);
// f(index) for every index of the sizes, the last dimension fastest.
void each_index(IntSpan sizes, const std::function<void(const Ints&)>& f);

// Random multiples of 1/8 within [-2, 2], which every floating dtype represents exactly.
Tensor sample(IntSpan sizes, DType dtype, uint64_t seed);
// The same values with the channels innermost in memory, for one to three spatial dimensions.
Tensor channels_last(const Tensor& tensor);
// The same values in a tensor whose last dimension has stride 2.
Tensor with_gaps(const Tensor& tensor);
Tensor converted(const Tensor& tensor, DType dtype);

struct ReferenceConvolution {
  Ints stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// value: the contiguous float64 result. magnitude: the same sums over absolute values, to which errors are relative.
struct Reference {
  Tensor value, magnitude;
};
Reference reference_convolution(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                const ReferenceConvolution& c);

// The largest |got - want| / magnitude.
double worst_error(const Tensor& got, const Reference& want);

}  // namespace sconce::testing
