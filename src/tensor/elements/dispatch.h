// From a DType at run time to a C++ type: dispatch_xxx(dtype, "name", []<class T>() {...}) calls the lambda with the
// element type T, as `f.template operator()<T>()`. kUnsupported "name: not implemented for 'dtype'" if the group lacks
// the dtype, as ATen's AT_DISPATCH does.
#pragma once

#include <string_view>

#include "sconce/check.h"
#include "sconce/float_types.h"

namespace sconce {

[[noreturn, gnu::cold]] inline void fail_dispatch(DType dtype, std::string_view name) {
  SCONCE_FAIL(kUnsupported, name, ": not implemented for '", dtype_name(dtype), "'");
}

namespace detail {

template <DType First, DType... Others, class F>
decltype(auto) dispatch_list(DType dtype, std::string_view name, F&& f) {
  using Result = decltype(f.template operator()<CppType<First>>());
  if constexpr (std::is_void_v<Result>) {
    const bool found = (dtype == First && (f.template operator()<CppType<First>>(), true)) ||
                       ((dtype == Others && (f.template operator()<CppType<Others>>(), true)) || ...);
    if (!found) fail_dispatch(dtype, name);
  } else {
    // A fold cannot return; the match is called through its own instantiation.
    if (dtype == First) return f.template operator()<CppType<First>>();
    Result (*call)(F&) = nullptr;
    ((dtype == Others && (
                             call = [](F& g) -> Result { return g.template operator()<CppType<Others>>(); }, true)) ||
     ...);
    if (!call) fail_dispatch(dtype, name);
    return call(f);
  }
}

}  // namespace detail

// float, double
template <class F>
decltype(auto) dispatch_float_double(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64>(dtype, name, f);
}
// float, double, half, bfloat16
template <class F>
decltype(auto) dispatch_floating(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16>(dtype, name, f);
}
// uint8, int8, int16, int32, int64
template <class F>
decltype(auto) dispatch_integral(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kInt64, DType::kInt32, DType::kUInt8, DType::kInt8, DType::kInt16>(dtype, name,
                                                                                                         f);
}
// the integers and bool
template <class F>
decltype(auto) dispatch_integral_bool(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kInt64, DType::kInt32, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool>(
      dtype, name, f);
}
// the integers, including unsigned 16 to 64 bit
template <class F>
decltype(auto) dispatch_integral_wide(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kInt64, DType::kInt32, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kUInt16,
                               DType::kUInt32, DType::kUInt64>(dtype, name, f);
}
// integers and floats of every width except the wide unsigned ones; no bool, no complex
template <class F>
decltype(auto) dispatch_real(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                               DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16>(dtype, name, f);
}
// dispatch_real and bool
template <class F>
decltype(auto) dispatch_real_bool(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                               DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool>(dtype, name,
                                                                                                           f);
}
// floating and complex; no complex half
template <class F>
decltype(auto) dispatch_floating_complex(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kComplex64,
                               DType::kComplex128>(dtype, name, f);
}
// dispatch_real_bool and complex of float and double
template <class F>
decltype(auto) dispatch_all_no_small(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                               DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool,
                               DType::kComplex64, DType::kComplex128>(dtype, name, f);
}
// every dtype that has values: no float4
template <class F>
decltype(auto) dispatch_all(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                               DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool,
                               DType::kComplex64, DType::kComplex128, DType::kComplex32, DType::kUInt16, DType::kUInt32,
                               DType::kUInt64, DType::kFloat8E5M2, DType::kFloat8E4M3FN, DType::kFloat8E5M2FNUZ,
                               DType::kFloat8E4M3FNUZ, DType::kFloat8E8M0FNU>(dtype, name, f);
}

// By element size alone, for kernels that only move elements: T is uint8_t, uint16_t, uint32_t, uint64_t or Bytes16.
struct alignas(8) Bytes16 {
  uint64_t low, high;
};
template <class F>
decltype(auto) dispatch_bytes(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

}  // namespace sconce
