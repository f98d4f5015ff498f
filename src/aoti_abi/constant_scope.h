// ConstantScope: provides the constants of a container that is made on this thread during the scope.
//
// A container that loads its weights copies them into its own blob and wraps each with
// aoti_torch_create_tensor_from_blob_v2. It stores the returned pointer, so the scope may return other memory that
// holds the same values. In this way all replicas share one constant set.
#pragma once

#include "sconce/tensor.h"

namespace sconce::aoti_abi {

class ConstantScope {
 public:
  ConstantScope() noexcept;
  ConstantScope(const ConstantScope&) = delete;
  ConstantScope& operator=(const ConstantScope&) = delete;
  static ConstantScope* current() noexcept;  // the calling thread's; null outside a load

  // `requested` views the container's memory for its next constant, which may be uninitialised. Returns the tensor to
  // use instead, with the same dtype, sizes and strides.
  virtual Tensor substitute(void* data, Tensor requested) = 0;

 protected:
  ~ConstantScope();

 private:
  ConstantScope* previous_;
};

}  // namespace sconce::aoti_abi
