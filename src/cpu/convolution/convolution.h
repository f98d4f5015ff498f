// Convolutions of every kind: picks the way to compute one and runs it.
#pragma once

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

// Writes all of `output`, whose sizes are the shape's. Input and weight have one dtype, bias any floating one for
// floating inputs. kUnsupported for dtypes that ATen does not convolve.
void convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

namespace cpu {

// input [N, C, ...], weight [O, C/groups, ...], transposed [C, O/groups, ...]; one to three dimensions, any strides.
// Matches aten::convolution, torch 2.15: float32, float64, float16, bfloat16, int64, and the narrower integers
// without dilation.
Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor* bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups);

}  // namespace cpu
}  // namespace sconce
