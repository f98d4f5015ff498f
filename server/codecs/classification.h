// Triton's classification extension: the k largest elements of an output, each as "VALUE:INDEX[:LABEL]". Pure
// functions.
//
// The first dimension is the batch if the model has one; all others form one list of classes. NaN sorts last, and equal
// elements keep their order. kUnsupported for complex and 4-bit elements.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::server::codecs {

struct Classes {
  std::vector<int64_t> shape;         // [batch?, min(k, elements)]
  std::vector<std::string> elements;  // row by row
};

Classes classify(const Tensor& tensor, uint64_t k, bool batched, std::span<const std::string> labels);

}  // namespace sconce::server::codecs
