// TensorTaker: a weight update that copies entries from device memory straight to their place. Find out by dynamic_cast
// whether an update is one.
#pragma once

#include <cstddef>
#include <span>

#include "sconce/tensor.h"

namespace sconce {

// The values of an entry, of its dtype and sizes, in any strides.
struct TensorPart {
  size_t entry;
  Tensor values;
};

class TensorTaker {
 public:
  // Whether it takes these values for a declared entry; others go through memory() and complete().
  virtual bool takes(size_t entry, const Tensor& values) const = 0;
  // Copies and completes these entries. All work on the values must be over. When it returns, they are not read any
  // more. kOutOfMemory, kDevice.
  virtual void take(std::span<const TensorPart> parts) = 0;

 protected:
  ~TensorTaker() = default;
};

}  // namespace sconce
