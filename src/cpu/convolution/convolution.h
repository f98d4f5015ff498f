// Convolutions of every kind: chooses the algorithm and runs it.
#pragma once

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

// Writes all of `output`, whose sizes are the shape's. Input and weight have one dtype, bias any floating one for
// floating inputs. kUnsupported for dtypes that ATen does not convolve.
void convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

}  // namespace sconce
