// Python's numbers as 0-dimensional tensors of the dtype that an input has.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sconce/tensor.h"

namespace sconce::python {

// bool, int, float and complex, and their subclasses (numpy.float64 is one).
bool is_number(nanobind::handle object) noexcept;

// A bool may become any type, an int any but bool, a float floats and complex ones, a complex only complex ones.
// Without a dtype: bool, int64, float32, complex64, as PyTorch makes them. kInvalidArgument if that loses more than
// precision.
Tensor tensor_of_number(nanobind::handle number, std::optional<DType> dtype, const std::string& what);

}  // namespace sconce::python
