// TensorTaker: a weight update that copies entries from device memory directly to their final memory. Use dynamic_cast
// to find out whether an update implements it.
#pragma once

#include <cstddef>
#include <span>

#include "sconce/tensor.h"

namespace sconce {

// The values of an entry, of its dtype and sizes, with any strides.
struct TensorPart {
  size_t entry;
  Tensor values;
};

class TensorTaker {
 public:
  // Whether it accepts these values for a declared entry; other entries use memory() and complete().
  virtual bool takes(size_t entry, const Tensor& values) const = 0;
  // Copies and completes these entries. All work on the values must be complete. They are not read after the return.
  // kOutOfMemory, kDevice.
  virtual void take(std::span<const TensorPart> parts) = 0;

 protected:
  ~TensorTaker() = default;
};

}  // namespace sconce
