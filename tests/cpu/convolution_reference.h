// A convolution, a linear layer and their fused operations by definition, in double precision: what convolution_test
// and mkldnn_test compare with.
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

// Multiples of 1/8 within [-2, 2], from a seed; exact in every floating dtype.
Tensor sample(IntSpan sizes, DType dtype, uint64_t seed);
// The same values, the channels innermost; of three dimensions too.
Tensor channels_last(const Tensor& tensor);
// The same values in every second element along the last dimension.
Tensor with_gaps(const Tensor& tensor);
Tensor converted(const Tensor& tensor, DType dtype);

struct ReferenceConvolution {
  Ints stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// Contiguous float64 result; magnitude: of absolute values, what an error is to be measured by.
struct Reference {
  Tensor value, magnitude;
};
Reference reference_convolution(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                const ReferenceConvolution& c);

// The largest |got - want| / magnitude.
double worst_error(const Tensor& got, const Reference& want);

}  // namespace sconce::testing
