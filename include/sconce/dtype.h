// Element types. Values are PyTorch's (c10::ScalarType), as aoti_torch_dtype_*() of torch 2.15 returns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sconce {

// enumerator, PyTorch's number, bytes, PyTorch's name, safetensors name ("" if there is none), OIP v2 datatype
#define SCONCE_DTYPES(X)                                               \
  X(kUInt8, 0, 1, "uint8", "U8", "UINT8")                              \
  X(kInt8, 1, 1, "int8", "I8", "INT8")                                 \
  X(kInt16, 2, 2, "int16", "I16", "INT16")                             \
  X(kInt32, 3, 4, "int32", "I32", "INT32")                             \
  X(kInt64, 4, 8, "int64", "I64", "INT64")                             \
  X(kFloat16, 5, 2, "float16", "F16", "FP16")                          \
  X(kFloat32, 6, 4, "float32", "F32", "FP32")                          \
  X(kFloat64, 7, 8, "float64", "F64", "FP64")                          \
  X(kComplex32, 8, 4, "complex32", "", "FP16")                         \
  X(kComplex64, 9, 8, "complex64", "C64", "FP32")                      \
  X(kComplex128, 10, 16, "complex128", "", "FP64")                     \
  X(kBool, 11, 1, "bool", "BOOL", "BOOL")                              \
  X(kBFloat16, 15, 2, "bfloat16", "BF16", "BF16")                      \
  X(kFloat8E5M2, 23, 1, "float8_e5m2", "F8_E5M2", "UINT8")             \
  X(kFloat8E4M3FN, 24, 1, "float8_e4m3fn", "F8_E4M3", "UINT8")         \
  X(kFloat8E5M2FNUZ, 25, 1, "float8_e5m2fnuz", "F8_E5M2FNUZ", "UINT8") \
  X(kFloat8E4M3FNUZ, 26, 1, "float8_e4m3fnuz", "F8_E4M3FNUZ", "UINT8") \
  X(kUInt16, 27, 2, "uint16", "U16", "UINT16")                         \
  X(kUInt32, 28, 4, "uint32", "U32", "UINT32")                         \
  X(kUInt64, 29, 8, "uint64", "U64", "UINT64")                         \
  X(kFloat8E8M0FNU, 44, 1, "float8_e8m0fnu", "F8_E8M0", "UINT8")       \
  X(kFloat4E2M1FNx2, 45, 1, "float4_e2m1fn_x2", "F4", "UINT8")

enum class DType : int8_t {
#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip) enumerator = number,
  SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
};

constexpr size_t dtype_bytes(DType dtype) noexcept {
  switch (dtype) {
#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip) \
  case DType::enumerator:                                           \
    return bytes;
    SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
  }
  return 0;
}

constexpr bool is_complex(DType d) noexcept {
  return d == DType::kComplex32 || d == DType::kComplex64 || d == DType::kComplex128;
}
// Float types that ATen's operators compute with (float8 and float4 only store values).
constexpr bool is_floating(DType d) noexcept {
  return d == DType::kFloat16 || d == DType::kFloat32 || d == DType::kFloat64 || d == DType::kBFloat16;
}
constexpr bool is_float8(DType d) noexcept {
  return (static_cast<int>(d) >= 23 && static_cast<int>(d) <= 26) || d == DType::kFloat8E8M0FNU;
}
constexpr bool is_integral(DType d, bool include_bool) noexcept {
  const int n = static_cast<int>(d);
  return (n >= 0 && n <= 4) || (n >= 27 && n <= 29) || (include_bool && d == DType::kBool);
}

std::string_view dtype_name(DType dtype) noexcept;         // "float32"
std::string_view dtype_safetensors(DType dtype) noexcept;  // "F32", "" if the format has none
std::string_view dtype_oip(DType dtype) noexcept;          // "FP32"; the carrier type for complex and float8
std::optional<DType> dtype_from_name(std::string_view pytorch_name) noexcept;
std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept;
std::optional<DType> dtype_from_number(int64_t c10_number) noexcept;

}  // namespace sconce
