#include "python/native/errors.h"

#include <new>

namespace sconce::python {
namespace {

PyObject* make = nullptr;  // sconce._errors.make(code, text), never released

nb::object made(const char* code, const char* text) {
  // Texts of a package may be any bytes.
  nb::object message =
      owned(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::string_view(text).size()), "backslashreplace"));
  return nb::borrow(make)(nb::str(code), message);
}

}  // namespace

void prepare_errors() { make = imported("sconce._errors", "make"); }

nb::object exception_object(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (nb::python_error& e) {
    return nb::borrow(e.value());
  } catch (const Error& e) {
    return made(wire_name(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return made(wire_name(ErrorCode::kOutOfMemory), "out of memory");
  } catch (const std::exception& e) {
    return made(wire_name(ErrorCode::kInternal), e.what());
  }
}

void set_python_error() noexcept {
  try {
    const nb::object exception = exception_object(std::current_exception());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  } catch (nb::python_error& e) {
    e.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
}

PyObject* imported(const char* module, const char* name) {
  return checked(PyObject_GetAttrString(nb::module_::import_(module).ptr(), name));
}

std::string text_of(nb::handle string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (!text) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

std::string class_name(nb::handle object) {
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  const std::string module = text_of(nb::str(nb::getattr(type, "__module__", nb::str("builtins"))));
  const std::string name = text_of(nb::str(nb::getattr(type, "__qualname__", nb::str("object"))));
  return module == "builtins" ? name : module + "." + name;
}

}  // namespace sconce::python
