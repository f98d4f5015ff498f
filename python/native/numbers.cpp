#include "python/native/numbers.h"

#include <complex>
#include <cstring>
#include <limits>
#include <string>

#include "python/native/errors.h"
#include "sconce/check.h"
#include "sconce/float_types.h"

namespace sconce::python {
namespace {

template <class T>
void store(Tensor& tensor, T value) {
  static_assert(sizeof(T) <= 16);
  std::memcpy(tensor.data(), &value, sizeof value);
}

[[noreturn]] void refuse(nanobind::handle number, DType dtype, const std::string& what, const char* why) {
  SCONCE_FAIL(kInvalidArgument, what, ": expected ", dtype_name(dtype), ", got the Python ", class_name(number), " ",
              text_of(nb::repr(number)), why);
}

template <class T>
void store_integer(Tensor& tensor, nanobind::handle number, const std::string& what) {
  const char* const range = ", which is out of its range";
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (overflow || value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      refuse(number, tensor.dtype(), what, range);
    store(tensor, static_cast<T>(value));
  } else {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
    const bool failed = value == static_cast<unsigned long long>(-1) && PyErr_Occurred();
    if (failed) PyErr_Clear();
    if (failed || value > std::numeric_limits<T>::max()) refuse(number, tensor.dtype(), what, range);
    store(tensor, static_cast<T>(value));
  }
}

double real_part(nanobind::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

std::complex<double> complex_value(nanobind::handle number) {
  if (!PyComplex_Check(number.ptr())) return real_part(number);
  return {PyComplex_RealAsDouble(number.ptr()), PyComplex_ImagAsDouble(number.ptr())};
}

}  // namespace

bool is_number(nanobind::handle object) noexcept {
  PyObject* o = object.ptr();
  return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o);  // bool is an int
}

Tensor tensor_of_number(nanobind::handle number, std::optional<DType> dtype, const std::string& what) {
  PyObject* const o = number.ptr();
  const bool is_bool = PyBool_Check(o), is_int = PyLong_Check(o), is_real = !PyComplex_Check(o);
  const DType type = dtype.value_or(is_bool   ? DType::kBool
                                    : is_int  ? DType::kInt64
                                    : is_real ? DType::kFloat32
                                              : DType::kComplex64);
  const char* const lossy = ", which it cannot hold";
  if (type == DType::kBool ? !is_bool : is_integral(type, false) ? !is_int : is_complex(type) ? false : !is_real)
    refuse(number, type, what, lossy);
  Tensor tensor = Tensor::empty({}, type);
  switch (type) {
    case DType::kBool:
      store(tensor, o == Py_True);
      break;
    case DType::kUInt8:
      store_integer<uint8_t>(tensor, number, what);
      break;
    case DType::kInt8:
      store_integer<int8_t>(tensor, number, what);
      break;
    case DType::kInt16:
      store_integer<int16_t>(tensor, number, what);
      break;
    case DType::kInt32:
      store_integer<int32_t>(tensor, number, what);
      break;
    case DType::kInt64:
      store_integer<int64_t>(tensor, number, what);
      break;
    case DType::kUInt16:
      store_integer<uint16_t>(tensor, number, what);
      break;
    case DType::kUInt32:
      store_integer<uint32_t>(tensor, number, what);
      break;
    case DType::kUInt64:
      store_integer<uint64_t>(tensor, number, what);
      break;
    case DType::kFloat64:
      store(tensor, real_part(number));
      break;
    case DType::kFloat32:
      store(tensor, static_cast<float>(real_part(number)));
      break;
    case DType::kFloat16:
      store(tensor, Half(static_cast<float>(real_part(number))));
      break;
    case DType::kBFloat16:
      store(tensor, BFloat16(static_cast<float>(real_part(number))));
      break;
    case DType::kComplex64:
      store(tensor, std::complex<float>(complex_value(number)));
      break;
    case DType::kComplex128:
      store(tensor, complex_value(number));
      break;
    default:
      refuse(number, type, what, ": pass an array of that type");
  }
  return tensor;
}

}  // namespace sconce::python
