// Tensors of other libraries (PyTorch, JAX, CuPy) by DLPack, and ours for them. No copies. All need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/native/dlpack_abi.h"
#include "sconce/tensor.h"

namespace sconce::python {

namespace nb = nanobind;

// Somebody else's tensor, as DLPack tells it.
struct ForeignTensor {
  DLTensor tensor{};
  bool writable = true;
  nb::object owner;  // what keeps the memory: the object itself, or a capsule
};

// nullopt if the object does not offer DLPack. Work on the memory that its library has under way on a GPU is over when
// this returns. to_host: asks for the values on the host, by a copy if they are elsewhere.
std::optional<ForeignTensor> foreign_tensor(nb::handle object, bool to_host = false);

// kUnsupported for dtypes and devices that Sconce lacks. `what` names the tensor.
DType dtype_of(const DLTensor& tensor, const char* what);
Device device_of(const DLTensor& tensor, const char* what);

DLDevice dl_device_of(const Tensor& tensor) noexcept;
// A capsule with a reference to the tensor's memory. versioned: "dltensor_versioned", which can say that it is
// read-only; a BufferError for constants otherwise.
nb::object dlpack_capsule(const Tensor& tensor, bool versioned);
// A torch.Tensor on the same memory. Imports torch.
nb::object torch_tensor(const Tensor& tensor);

}  // namespace sconce::python
