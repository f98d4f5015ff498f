// Reads and makes single elements. ABI: c/shim.h, torch 2.6 to 2.15; at::Tensor::item().to<T>().
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "sconce/float_types.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/tensor/inspection.h"

using sconce::BFloat16;
using sconce::DType;
using sconce::Half;
using sconce::ScalarValue;
using sconce::Tensor;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;
using sconce::aoti_abi::new_handle;
using Kind = sconce::ScalarValue::Kind;

namespace {

[[noreturn]] void overflow(const char* type) {
  SCONCE_FAIL(kInvalidArgument, "value cannot be converted to type ", type, " without overflow");
}

// Like c10::checked_convert: overflow is an error, fractions are truncated, floats keep infinities and NaN.
template <class T>
T convert(const ScalarValue& v, const char* type) {
  if constexpr (std::is_same_v<T, bool>) {
    return v.kind == Kind::kReal || v.kind == Kind::kComplex ? v.real != 0 || v.imag != 0 : v.u != 0 || v.i != 0;
  } else {
    if (v.kind == Kind::kComplex && v.imag != 0)
      SCONCE_FAIL(kInvalidArgument, "value cannot be converted to type ", type, " without losing its imaginary part");
    if constexpr (std::is_integral_v<T>) {
      if (v.kind == Kind::kReal || v.kind == Kind::kComplex) {
        const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
        // Like PyTorch, converts negative values to unsigned types modulo their range.
        const double low = -limit;
        if (!(v.real < limit && v.real >= low)) overflow(type);
        return v.real < 0 ? static_cast<T>(static_cast<int64_t>(v.real)) : static_cast<T>(v.real);
      }
      if (v.kind == Kind::kUnsigned) {
        if (v.u > static_cast<uint64_t>(std::numeric_limits<T>::max())) overflow(type);
        return static_cast<T>(v.u);
      }
      if constexpr (std::is_signed_v<T>) {
        if (v.i < std::numeric_limits<T>::min() || v.i > std::numeric_limits<T>::max()) overflow(type);
      } else if (v.i < 0 ? static_cast<uint64_t>(-(v.i + 1)) >= static_cast<uint64_t>(std::numeric_limits<T>::max())
                         : static_cast<uint64_t>(v.i) > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
        overflow(type);
      }
      return static_cast<T>(v.i);
    } else {
      const double value = v.kind == Kind::kReal || v.kind == Kind::kComplex ? v.real
                           : v.kind == Kind::kUnsigned                       ? static_cast<double>(v.u)
                                                                             : static_cast<double>(v.i);
      if (std::is_same_v<T, float> && std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max())
        overflow(type);
      return static_cast<T>(value);
    }
  }
}

template <class Narrow>
Narrow convert_narrow(const ScalarValue& v, const char* type, float largest) {
  const float value = convert<float>(v, type);
  if (std::isfinite(value) && std::abs(value) > largest) overflow(type);
  return Narrow(value);
}

template <class T>
AtenTensorHandle scalar_tensor(T value, DType dtype) {
  Tensor t = Tensor::empty({}, dtype);
  *t.data_as<T>() = value;
  return new_handle(std::move(t));
}

}  // namespace

#define SCONCE_ITEM(name, type)                                                                                       \
  extern "C" AOTITorchError aoti_torch_item_##name(AtenTensorHandle tensor, type* ret) {                              \
    return guard("aoti_torch_item_" #name, [&] { *ret = convert<type>(sconce::item(in(tensor, "tensor")), #name); }); \
  }
SCONCE_ITEM(float32, float)
SCONCE_ITEM(float64, double)
SCONCE_ITEM(uint8, uint8_t)
SCONCE_ITEM(uint16, uint16_t)
SCONCE_ITEM(uint32, uint32_t)
SCONCE_ITEM(uint64, uint64_t)
SCONCE_ITEM(int8, int8_t)
SCONCE_ITEM(int16, int16_t)
SCONCE_ITEM(int32, int32_t)
SCONCE_ITEM(int64, int64_t)
SCONCE_ITEM(bool, bool)

extern "C" {

AOTITorchError aoti_torch_item_float16(AtenTensorHandle tensor, Half* ret) {
  return guard("aoti_torch_item_float16",
               [&] { *ret = convert_narrow<Half>(sconce::item(in(tensor, "tensor")), "float16", 65504.f); });
}
AOTITorchError aoti_torch_item_bfloat16(AtenTensorHandle tensor, BFloat16* ret) {
  return guard("aoti_torch_item_bfloat16", [&] {
    *ret = convert_narrow<BFloat16>(sconce::item(in(tensor, "tensor")), "bfloat16", 3.38953139e38f);
  });
}
AOTITorchError aoti_torch_item_complex64(AtenTensorHandle tensor, std::complex<float>* ret) {
  return guard("aoti_torch_item_complex64", [&] {
    ScalarValue v = sconce::item(in(tensor, "tensor"));
    const auto imag = static_cast<float>(v.kind == Kind::kComplex ? v.imag : 0.0);
    v.imag = 0;
    *ret = {convert<float>(v, "complex64"), imag};
  });
}

#define SCONCE_SCALAR_TENSOR(name, type, dtype)                                                                   \
  AOTITorchError aoti_torch_scalar_to_tensor_##name(type value, AtenTensorHandle* ret) {                          \
    return guard("aoti_torch_scalar_to_tensor_" #name, [&] { *ret = scalar_tensor<type>(value, DType::dtype); }); \
  }
SCONCE_SCALAR_TENSOR(float32, float, kFloat32)
SCONCE_SCALAR_TENSOR(float64, double, kFloat64)
SCONCE_SCALAR_TENSOR(uint8, uint8_t, kUInt8)
SCONCE_SCALAR_TENSOR(uint16, uint16_t, kUInt16)
SCONCE_SCALAR_TENSOR(uint32, uint32_t, kUInt32)
SCONCE_SCALAR_TENSOR(uint64, uint64_t, kUInt64)
SCONCE_SCALAR_TENSOR(int8, int8_t, kInt8)
SCONCE_SCALAR_TENSOR(int16, int16_t, kInt16)
SCONCE_SCALAR_TENSOR(int32, int32_t, kInt32)
SCONCE_SCALAR_TENSOR(int64, int64_t, kInt64)
SCONCE_SCALAR_TENSOR(bool, bool, kBool)

// c10::complex and std::complex are both passed like a struct of two numbers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
SCONCE_SCALAR_TENSOR(complex64, std::complex<float>, kComplex64)
SCONCE_SCALAR_TENSOR(complex128, std::complex<double>, kComplex128)
#pragma GCC diagnostic pop

}  // extern "C"
