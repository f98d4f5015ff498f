// sconce.Tensor: a tensor of the runtime as a Python object, on whatever device, for DLPack and NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include "sconce/tensor.h"

namespace sconce::python {

namespace nb = nanobind;

struct TensorObject {
  Tensor tensor;
};

void bind_tensor(nb::module_& module);
// Null if the object is no sconce.Tensor.
const Tensor* tensor_of_object(nb::handle object) noexcept;
nb::object object_of_tensor(Tensor tensor);

}  // namespace sconce::python
