// The functions of libsconce_cuda that packages call, as C++ functions on device tensors: sconce::gpu::NAME for each
// row of its tables. They go through the C ABI; a failure throws sconce::Error with the operator's own text.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "src/aoti_abi/op_args.h"

namespace sconce {
class DeviceBackend;
}

namespace sconce::gpu {

// Why there is no device to test on; empty if there is one.
const std::string& why_none();
// The library's DeviceBackend (src/device/device_backend.h).
DeviceBackend& backend();

namespace detail {

void* function_named(const char* name);
void check_result(AOTITorchError result);

inline AtenTensorHandle handle_of(const Tensor& t) {
  return reinterpret_cast<AtenTensorHandle>(const_cast<Tensor*>(&t));
}

// Holds what a pointer argument points to, during a call.
template <class To>
struct Pointed {
  template <class From>
  explicit Pointed(const std::optional<From>& from) : given(from.has_value()) {
    if (from) value = static_cast<To>(*from);
  }
  explicit Pointed(const Tensor* tensor) : given(tensor != nullptr) {
    if (tensor) value = handle_of(*tensor);
  }
  operator To*() { return given ? &value : nullptr; }
  To value{};
  bool given;
};
struct Handles {
  explicit Handles(const TensorList& list) {
    for (size_t i = 0; i < list.size(); ++i) all.push_back(handle_of(list[i]));
  }
  std::vector<AtenTensorHandle> all;
};
struct OptHandles {
  explicit OptHandles(const OptTensorList& list) {
    for (size_t i = 0; i < list.size(); ++i) all.push_back(list[i] ? handle_of(*list[i]) : nullptr);
    for (AtenTensorHandle& handle : all) places.push_back(handle ? &handle : nullptr);
  }
  std::vector<AtenTensorHandle> all;
  std::vector<const AtenTensorHandle*> places;
};
struct OptIntsPlace {
  explicit OptIntsPlace(const std::optional<IntSpan>& list) : given(list), data(list ? list->data() : nullptr) {}
  const int64_t** place() { return given ? &data : nullptr; }
  int64_t size() const { return given ? static_cast<int64_t>(given->size()) : 0; }
  std::optional<IntSpan> given;
  const int64_t* data;
};

inline std::optional<const char*> text_of(const std::optional<std::string_view>& text) {
  return text ? std::optional(text->data()) : std::nullopt;
}
// Packages never have a generator of their own.
inline AtenGeneratorHandle* no_generator(const Generator* generator) {
  SCONCE_CHECK(!generator, kUnsupported, "tests draw from the device's own generator");
  return nullptr;
}

inline Tensor taken(AtenTensorHandle handle) {
  if (!handle) return {};
  Tensor result = std::move(*aoti_abi::tensor_of(handle));
  aoti_abi::delete_handle(handle);
  return result;
}

}  // namespace detail

#define BACK_In(n) ::sconce::gpu::detail::handle_of(n)
#define BACK_Out(n) ::sconce::gpu::detail::handle_of(n)
#define BACK_OptIn(n) ::sconce::gpu::detail::Pointed<AtenTensorHandle>(n)
#define BACK_List(n) ::sconce::gpu::detail::Handles(n).all.data(), static_cast<int64_t>(n.size())
#define BACK_OptList(n) ::sconce::gpu::detail::OptHandles(n).places.data(), static_cast<int64_t>(n.size())
#define BACK_Int(n) n
#define BACK_OptInt(n) ::sconce::gpu::detail::Pointed<int64_t>(n)
#define BACK_Ints(n) n.data(), static_cast<int64_t>(n.size())
#define BACK_OptInts(n) ::sconce::gpu::detail::OptIntsPlace(n).place(), static_cast<int64_t>(n ? n->size() : 0)
#define BACK_Real(n) n
#define BACK_OptReal(n) ::sconce::gpu::detail::Pointed<double>(n)
#define BACK_Bool(n) static_cast<int32_t>(n)
#define BACK_OptBool(n) ::sconce::gpu::detail::Pointed<int32_t>(n)
#define BACK_Bools(n) n.data(), static_cast<int64_t>(n.size())
#define BACK_Type(n) static_cast<int32_t>(n)
#define BACK_OptType(n) ::sconce::gpu::detail::Pointed<int32_t>(n)
#define BACK_OptEnum(n) ::sconce::gpu::detail::Pointed<int32_t>(n)
#define BACK_OptDevice(n)                                                                                   \
  ::sconce::gpu::detail::Pointed<int32_t>(n ? std::optional(static_cast<int32_t>(n->type)) : std::nullopt), \
      n ? n->index : 0
#define BACK_Str(n) std::string(n).c_str()
#define BACK_OptStr(n) ::sconce::gpu::detail::Pointed<const char*>(::sconce::gpu::detail::text_of(n))
#define BACK_OptGenerator(n) ::sconce::gpu::detail::no_generator(n)

#define BACK_RET_0
#define BACK_RET_1 , &results[0]
#define BACK_RET_2 BACK_RET_1, &results[1]
#define BACK_RET_3 BACK_RET_2, &results[2]
#define BACK_RET_4 BACK_RET_3, &results[3]
#define BACK_RET_5 BACK_RET_4, &results[4]
#define BACK_RET_6 BACK_RET_5, &results[5]
#define BACK_GIVE_0
#define BACK_GIVE_1 return ::sconce::gpu::detail::taken(results[0]);
#define BACK_GIVE(count)                                                                    \
  std::array<Tensor, count> tensors;                                                        \
  for (size_t i = 0; i < count; ++i) tensors[i] = ::sconce::gpu::detail::taken(results[i]); \
  return tensors;
#define BACK_GIVE_2 BACK_GIVE(2)
#define BACK_GIVE_3 BACK_GIVE(3)
#define BACK_GIVE_4 BACK_GIVE(4)
#define BACK_GIVE_5 BACK_GIVE(5)
#define BACK_GIVE_6 BACK_GIVE(6)

#define SCONCE_OP(name, count, ...)                                                                            \
  inline RET_TYPE_##count name(SCONCE_MAP(KER_, __VA_ARGS__)) {                                                \
    using Function = AOTITorchError (*)(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##count);                        \
    static const auto function = reinterpret_cast<Function>(detail::function_named("aoti_torch_cuda_" #name)); \
    [[maybe_unused]] AtenTensorHandle results[6] = {};                                                         \
    detail::check_result(function(SCONCE_MAP(BACK_, __VA_ARGS__) BACK_RET_##count));                           \
    BACK_GIVE_##count                                                                                          \
  }
#include "src/operators/cuda_table.def"
#undef SCONCE_OP

}  // namespace sconce::gpu
