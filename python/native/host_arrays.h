// NumPy arrays as tensors, and tensors as NumPy arrays, without copies where that is possible. All need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sconce/tensor.h"

namespace sconce::python {

namespace nb = nanobind;

// Imports NumPy. Call this once.
void import_numpy();
// From now on objects that tensors hold are not released any more: the interpreter ends.
void leave_objects() noexcept;

bool is_array(nb::handle object) noexcept;         // numpy.ndarray
bool is_numpy_scalar(nb::handle object) noexcept;  // numpy.float32(1)
nb::object array_of_scalar(nb::handle object);     // 0-dimensional
// An array of anything that has a buffer or __array__; null if it has neither.
nb::object array_of_buffer(nb::handle object);

// An array as it stands, before anybody asks whether the runtime can read it.
struct ArrayView {
  std::optional<DType> dtype;  // nullopt: NumPy's type has no counterpart
  std::byte* data = nullptr;
  int rank = 0;
  const int64_t* sizes = nullptr;
  const int64_t* byte_strides = nullptr;
  bool native = true;  // in this machine's byte order and aligned
  bool writable = true;
};
ArrayView view_array(nb::handle array);
std::string dtype_text(nb::handle array);  // ">f4", "object"

// A tensor on memory that `owner` keeps alive, which the tensor holds a reference to. Sizes and strides are checked by
// the caller.
Tensor tensor_on(void* data, IntSpan sizes, IntSpan strides, DType dtype, Device device, nb::handle owner);

// NumPy's type of the same name: its own, or one of ml_dtypes. kUnsupported says what to install or to do instead.
nb::object numpy_dtype(DType dtype);
// The unsigned integers of the same size ("uint16" for bfloat16).
nb::object bits_dtype(DType dtype);
// An array on the memory of a tensor on the host, read-only if that is a constant. dtype as numpy_dtype.
nb::object array_on(const Tensor& tensor, nb::handle dtype);
nb::object array_on(const Tensor& tensor);

// Copies elements between an array and a tensor on the host of the same sizes and dtype, whatever the strides and the
// byte order of the array.
void copy_array(nb::handle from, const Tensor& to);
void copy_array(const Tensor& from, nb::handle to);

}  // namespace sconce::python
