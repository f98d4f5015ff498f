// Triton's classification extension: an output as its k largest elements, "VALUE:INDEX[:LABEL]" each. Pure functions.
//
// The first dimension is the batch where the model has one; the others are one list of classes. NaN is below all else;
// of equal elements the first is first. kUnsupported for complex and 4-bit elements.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::server {

struct Classes {
  std::vector<int64_t> shape;         // [batch?, min(k, elements)]
  std::vector<std::string> elements;  // row by row
};

Classes classify(const Tensor& tensor, uint64_t k, bool batched, std::span<const std::string> labels);

}  // namespace sconce::server
