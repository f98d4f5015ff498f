// A tensor of one number, which the host knows.
#pragma once

#include "src/cuda/runtime/copy.h"
#include "src/tensor/copy.h"

namespace sconce::cuda {

// On the stream of the device, which is the current one.
inline Tensor filled(IntSpan sizes, double value, DType dtype, Device device) {
  Tensor number = Tensor::empty({}, DType::kFloat64), element = Tensor::empty({}, dtype);
  *number.data_as<double>() = value;
  sconce::copy(number, element);
  Tensor out = Tensor::empty(sizes, dtype, device);
  fill(out, element.data());
  return out;
}

}  // namespace sconce::cuda
