// ConstantScope: while one is alive on a thread, it provides the constants of the container that is made there.
//
// A container that loads its weights copies them into its own blob and wraps each with
// aoti_torch_create_tensor_from_blob_v2. It then keeps the pointer that it gets back, so the shim may answer with other
// memory that holds the same values. This is how all replicas share one constant set.
#pragma once

#include "sconce/tensor.h"

namespace sconce::aoti_abi {

class ConstantScope {
 public:
  ConstantScope() noexcept;
  ConstantScope(const ConstantScope&) = delete;
  ConstantScope& operator=(const ConstantScope&) = delete;
  static ConstantScope* current() noexcept;  // the calling thread's; null outside a load

  // `requested` views the container's memory for its next constant, whose bytes may never have been filled. Returns the
  // tensor to use instead, with the same dtype, sizes and strides.
  virtual Tensor substitute(void* data, Tensor requested) = 0;

 protected:
  ~ConstantScope();

 private:
  ConstantScope* previous_;
};

}  // namespace sconce::aoti_abi
