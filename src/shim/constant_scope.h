// ConstantScope: while one is alive on a thread, the constants that a container makes there come from it.
//
// A container that loads its weights copies them into a blob of its own and wraps each with
// aoti_torch_create_tensor_from_blob_v2. Containers keep the pointer they see afterwards, so the shim may answer with
// other bytes of the same meaning: this is how all replicas share one constant set.
#pragma once

#include "sconce/tensor.h"

namespace sconce::shim {

class ConstantScope {
 public:
  ConstantScope() noexcept;
  ConstantScope(const ConstantScope&) = delete;
  ConstantScope& operator=(const ConstantScope&) = delete;
  static ConstantScope* current() noexcept;  // of the calling thread; null outside a load

  // `requested` views what the container made for its next constant (bytes possibly never filled). Returns the tensor
  // to use: same dtype, sizes and strides.
  virtual Tensor substitute(void* data, Tensor requested) = 0;

 protected:
  ~ConstantScope();

 private:
  ConstantScope* previous_;
};

}  // namespace sconce::shim
