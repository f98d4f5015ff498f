// Errors of the runtime as Python exceptions, and errors of Python as C++ exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>

#include "sconce/error.h"

namespace sconce::python {

namespace nb = nanobind;

// Imports the classes of sconce._errors. Call this once, with the GIL.
void prepare_errors();

// A new exception object for an error. Needs the GIL.
nb::object exception_object(const std::exception_ptr& error);
// Sets the calling thread's Python error from the C++ exception that is being handled. Needs the GIL.
void set_python_error() noexcept;

// Throws nb::python_error if a call of Python's C API failed, which is if it returned null.
inline PyObject* checked(PyObject* object) {
  if (!object) throw nb::python_error();
  return object;
}
inline nb::object owned(PyObject* object) { return nb::steal<nb::object>(checked(object)); }

// What a Python module defines, as a reference that is never released: for static variables.
PyObject* imported(const char* module, const char* name);

// "list", "torch.Tensor": how errors call an object.
std::string class_name(nb::handle object);
std::string text_of(nb::handle string);

}  // namespace sconce::python
