// Reads the values of a tensor for diagnostics. Not for the hot path.
#pragma once

#include <cstdint>
#include <string>

#include "sconce/tensor.h"

namespace sconce {

struct NonFinite {
  int64_t nan = 0, inf = 0;
};

// Floating and complex dtypes; others have no such values. Any strides.
NonFinite count_nonfinite(const Tensor& tensor);

// "float32 [2, 3] min -1 max 4 mean 0.5", or the value of a single element.
std::string summarize(const Tensor& tensor);

// One element of any dtype, without loss: the integer forms hold integers and bool, `real` the rest.
struct ScalarValue {
  enum class Kind { kSigned, kUnsigned, kReal, kComplex, kBool } kind = Kind::kSigned;
  int64_t i = 0;
  uint64_t u = 0;
  double real = 0;
  double imag = 0;
};
ScalarValue load_scalar(const void* element, DType dtype);
// at::Tensor::item(): kInvalidArgument unless the tensor has exactly one element.
ScalarValue item(const Tensor& tensor);

}  // namespace sconce
