// A tensor filled with one number, which the host knows.
#pragma once

#include "src/cuda/runtime/copy.h"
#include "src/tensor/copy.h"

namespace sconce::cuda {

// The number as one element of the dtype, in host memory.
inline Tensor element_of(double value, DType dtype) {
  Tensor number = Tensor::empty({}, DType::kFloat64), element = Tensor::empty({}, dtype);
  *number.data_as<double>() = value;
  sconce::copy(number, element);
  return element;
}

// On the stream of the device, which is the current one.
inline Tensor filled(IntSpan sizes, double value, DType dtype, Device device) {
  Tensor out = Tensor::empty(sizes, dtype, device);
  fill(out, element_of(value, dtype).data());
  return out;
}

}  // namespace sconce::cuda
