#include "server/scheduling/pipelines/cast.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {
namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class To, class From>
To converted(From value) noexcept {
  if constexpr (is_half<From>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (value != value) return To{};
    // A limit that the float type cannot represent is rounded up, to a number outside the range.
    if (value >= static_cast<From>(Limits::max())) return Limits::max();
    if (value <= static_cast<From>(Limits::min())) return Limits::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls visit(T{}) with the C++ type of a dtype. Returns false if the dtype cannot be cast.
template <class F>
bool with_type(DType dtype, F&& visit) {
  switch (dtype) {
    case DType::kBool:
      return visit(bool{}), true;
    case DType::kUInt8:
      return visit(uint8_t{}), true;
    case DType::kInt8:
      return visit(int8_t{}), true;
    case DType::kInt16:
      return visit(int16_t{}), true;
    case DType::kInt32:
      return visit(int32_t{}), true;
    case DType::kInt64:
      return visit(int64_t{}), true;
    case DType::kUInt16:
      return visit(uint16_t{}), true;
    case DType::kUInt32:
      return visit(uint32_t{}), true;
    case DType::kUInt64:
      return visit(uint64_t{}), true;
    case DType::kFloat16:
      return visit(Half{}), true;
    case DType::kBFloat16:
      return visit(BFloat16{}), true;
    case DType::kFloat32:
      return visit(float{}), true;
    case DType::kFloat64:
      return visit(double{}), true;
    default:
      return false;
  }
}

}  // namespace

bool is_castable(DType dtype) noexcept {
  return with_type(dtype, [](auto) {});
}

Tensor cast(const Tensor& from, DType dtype) {
  if (!from.is_contiguous()) {
    Tensor rows = Tensor::empty(from.sizes(), from.dtype());
    copy_to_contiguous(from, static_cast<std::byte*>(rows.data()));
    return cast(rows, dtype);
  }
  Tensor to = Tensor::empty(from.sizes(), dtype);
  const int64_t count = from.numel();
  const bool possible = with_type(from.dtype(), [&](auto source) {
    const auto* const in = from.data_as<decltype(source)>();
    with_type(dtype, [&](auto target) {
      auto* const out = to.data_as<decltype(target)>();
      for (int64_t i = 0; i < count; ++i) out[i] = converted<decltype(target)>(in[i]);
    });
  });
  SCONCE_CHECK(possible && is_castable(dtype), kUnsupported, "no cast from ", dtype_name(from.dtype()), " to ",
               dtype_name(dtype));
  return to;
}

}  // namespace sconce::server::scheduling
