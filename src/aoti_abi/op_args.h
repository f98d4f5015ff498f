// Argument kinds of op_table.def in the C ABI. kernel_args.h has the kernels' parameter types.
//   ABI_  parameter of the exported C function      (c_shim_cpu.h conventions, torch 2.6 to 2.15)
//   FWD_  conversion to the kernel's parameter; throws kInvalidArgument for a null tensor
#pragma once

#include "sconce/check.h"
#include "src/aoti_abi/abi_types.h"
#include "src/operators/kernel_args.h"

namespace sconce::aoti_abi {

inline Tensor& in(AtenTensorHandle handle, const char* name) {
  SCONCE_CHECK(handle, kInvalidArgument, name, " is null");
  return *tensor_of(handle);
}
inline const Tensor* optional_in(const AtenTensorHandle* handle) noexcept {
  return handle && *handle && tensor_of(*handle)->defined() ? tensor_of(*handle) : nullptr;
}
template <class To, class From>
std::optional<To> optional_value(const From* value) {
  return value ? std::optional<To>(static_cast<To>(*value)) : std::nullopt;
}
inline DType dtype_in(int32_t number, const char* name) {
  const auto dtype = dtype_from_number(number);
  SCONCE_CHECK(dtype, kUnsupported, name, ": dtype number ", number, " is not known");
  return *dtype;
}
inline std::optional<DType> optional_dtype(const int32_t* number, const char* name) {
  return number ? std::optional(dtype_in(*number, name)) : std::nullopt;
}
inline std::optional<Device> optional_device(const int32_t* type, int32_t index) {
  if (!type) return std::nullopt;
  return Device{static_cast<DeviceType>(*type), static_cast<int8_t>(*type == 0 ? -1 : index)};
}
inline std::optional<IntSpan> optional_ints(const int64_t** values, int64_t length) {
  return values ? std::optional(IntSpan(*values, static_cast<size_t>(length))) : std::nullopt;
}
inline std::optional<std::span<const double>> optional_reals(const double** values, int64_t length) {
  return values ? std::optional(std::span(*values, static_cast<size_t>(length))) : std::nullopt;
}
inline TensorList tensor_list(const AtenTensorHandle* handles, int64_t length) {
  return {reinterpret_cast<const Tensor* const*>(handles), static_cast<size_t>(length)};
}
inline OptTensorList optional_tensor_list(const AtenTensorHandle** handles, int64_t length) {
  return {reinterpret_cast<const Tensor* const* const*>(handles), static_cast<size_t>(length)};
}

}  // namespace sconce::aoti_abi

#define ABI_In(n) AtenTensorHandle n
#define FWD_In(n) ::sconce::aoti_abi::in(n, #n)
#define ABI_Out(n) AtenTensorHandle n
#define FWD_Out(n) ::sconce::aoti_abi::in(n, #n)
#define ABI_OptIn(n) AtenTensorHandle* n
#define FWD_OptIn(n) ::sconce::aoti_abi::optional_in(n)
// A plain handle that may be null, as in shim.h; generated headers use a pointer to a handle.
#define ABI_NullableIn(n) AtenTensorHandle n
#define FWD_NullableIn(n) ::sconce::aoti_abi::optional_in(&n)
#define ABI_List(n) const AtenTensorHandle *n, int64_t n##_len_
#define FWD_List(n) ::sconce::aoti_abi::tensor_list(n, n##_len_)
#define ABI_OptList(n) const AtenTensorHandle **n, int64_t n##_len_
#define FWD_OptList(n) ::sconce::aoti_abi::optional_tensor_list(n, n##_len_)
#define ABI_Int(n) int64_t n
#define FWD_Int(n) n
#define ABI_OptInt(n) int64_t* n
#define FWD_OptInt(n) ::sconce::aoti_abi::optional_value<int64_t>(n)
#define ABI_Ints(n) const int64_t *n, int64_t n##_len_
#define FWD_Ints(n) ::sconce::IntSpan(n, static_cast<size_t>(n##_len_))
#define ABI_OptInts(n) const int64_t **n, int64_t n##_len_
#define FWD_OptInts(n) ::sconce::aoti_abi::optional_ints(n, n##_len_)
#define ABI_Real(n) double n
#define FWD_Real(n) n
#define ABI_OptReal(n) double* n
#define FWD_OptReal(n) ::sconce::aoti_abi::optional_value<double>(n)
// An array of optional numbers; OptRealList is an optional array.
#define ABI_OptReals(n) const double **n, int64_t n##_len_
#define FWD_OptReals(n) std::span<const double* const>(n, static_cast<size_t>(n##_len_))
#define ABI_OptRealList(n) const double **n, int64_t n##_len_
#define FWD_OptRealList(n) ::sconce::aoti_abi::optional_reals(n, n##_len_)
#define ABI_Bool(n) int32_t n
#define FWD_Bool(n) (n != 0)
#define ABI_OptBool(n) int32_t* n
#define FWD_OptBool(n) ::sconce::aoti_abi::optional_value<bool>(n)
#define ABI_Bools(n) const int32_t *n, int64_t n##_len_
#define FWD_Bools(n) std::span<const int32_t>(n, static_cast<size_t>(n##_len_))
#define ABI_Type(n) int32_t n
#define FWD_Type(n) ::sconce::aoti_abi::dtype_in(n, #n)
#define ABI_OptType(n) int32_t* n
#define FWD_OptType(n) ::sconce::aoti_abi::optional_dtype(n, #n)
#define ABI_OptEnum(n) int32_t* n /* Layout, MemoryFormat, pin_memory */
#define FWD_OptEnum(n) ::sconce::aoti_abi::optional_value<int32_t>(n)
#define ABI_OptDevice(n) int32_t *n, int32_t n##_index_
#define FWD_OptDevice(n) ::sconce::aoti_abi::optional_device(n, n##_index_)
#define ABI_Str(n) const char* n
#define FWD_Str(n) std::string_view(n)
#define ABI_OptStr(n) const char** n
#define FWD_OptStr(n) ::sconce::aoti_abi::optional_value<std::string_view>(n)
#define ABI_OptGenerator(n) AtenGeneratorHandle* n
#define FWD_OptGenerator(n) (n ? reinterpret_cast<::sconce::Generator*>(*n) : nullptr)

// Results: trailing AtenTensorHandle*. A caller passes null for a result that it does not need.
#define RET_ABI_0
#define RET_ABI_1 , AtenTensorHandle* ret0
#define RET_ABI_2 RET_ABI_1, AtenTensorHandle* ret1
#define RET_ABI_3 RET_ABI_2, AtenTensorHandle* ret2
#define RET_ABI_4 RET_ABI_3, AtenTensorHandle* ret3
#define RET_ABI_5 RET_ABI_4, AtenTensorHandle* ret4
#define RET_ABI_6 RET_ABI_5, AtenTensorHandle* ret5
#define RET_OUT_0
#define RET_OUT_1 , ret0
#define RET_OUT_2 RET_OUT_1, ret1
#define RET_OUT_3 RET_OUT_2, ret2
#define RET_OUT_4 RET_OUT_3, ret3
#define RET_OUT_5 RET_OUT_4, ret4
#define RET_OUT_6 RET_OUT_5, ret5
