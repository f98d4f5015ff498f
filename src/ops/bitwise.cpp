#include "src/ops/bitwise.h"

#include <atomic>
#include <cmath>
#include <vector>

#include "sconce/check.h"
#include "src/ops/computed.h"
#include "src/ops/copy.h"
#include "src/ops/elementwise.h"
#include "src/ops/functions.h"
#include "src/ops/index.h"
#include "src/ops/lanes.h"
#include "src/ops/view.h"

namespace sconce::cpu {
namespace {

template <class F>
Tensor on_integers(const char* name, const Tensor& self, const Tensor& other, F f) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  dispatch_integral(dtype, name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out, [f](T a, T b) { return static_cast<T>(f(a, b)); }, {&self, &other});
  });
  return out;
}

template <class F>
Tensor on_bits(const char* name, const Tensor& self, const Tensor& other, F f) {
  const DType dtype = ResultType().add(self).add(other).get();
  if (dtype != DType::kBool) return on_integers(name, self, other, f);
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  map_elements<bool, bool, bool>(name, out, [f](bool a, bool b) { return static_cast<bool>(f(a, b)); },
                                 {&self, &other});
  return out;
}

// As c10::div_floor_floating: like Python's.
template <class T>
[[gnu::always_inline]] inline T floored_quotient(T a, T b) {
  using lanes::choose;
  const T remainder = lanes::fmod(a, b), ratio = a / b;
  T quotient = (a - remainder) / b;
  quotient = choose((remainder != 0) & ((b < 0) != (remainder < 0)), quotient - T(1), quotient);
  T floored = std::floor(quotient);
  floored = choose(quotient - floored > T(0.5), floored + T(1), floored);
  return choose(b == 0, ratio, choose(quotient == 0, std::copysign(T(0), ratio), floored));
}

// f(T, T) of a divisor that is neither 0, which fails, nor -1, which wraps.
template <class F>
void divide_integers(const char* name, Tensor& out, const Tensor& self, const Tensor& other, F f) {
  std::atomic<bool> by_zero = false;
  dispatch_integral(out.dtype(), name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out,
                          [&by_zero, f](T a, T b) -> T {
                            if (b == 0) {
                              by_zero.store(true, std::memory_order_relaxed);
                              return 0;
                            }
                            if constexpr (std::is_signed_v<T>)
                              if (b == T(-1)) return static_cast<T>(-static_cast<uint64_t>(a));
                            return f(a, b);
                          },
                          {&self, &other});
  });
  SCONCE_CHECK(!by_zero.load(), kInvalidArgument, name, ": ZeroDivisionError");
}

}  // namespace

Tensor bitwise_and(const Tensor& self, const Tensor& other) {
  return on_bits("bitwise_and", self, other, [](auto a, auto b) { return a & b; });
}
Tensor bitwise_or(const Tensor& self, const Tensor& other) {
  return on_bits("bitwise_or", self, other, [](auto a, auto b) { return a | b; });
}

Tensor bitwise_xor(const Tensor& self, const Tensor& other) {
  return on_bits("bitwise_xor", self, other, [](auto a, auto b) { return a ^ b; });
}
Tensor bitwise_not(const Tensor& self) {
  if (self.dtype() == DType::kBool) return logical_not(self);
  Tensor out = make_result("bitwise_not", {&self}, self.dtype(), self.dtype());
  dispatch_integral(self.dtype(), "bitwise_not", [&]<class T>() -> void {
    map_elements<T, T>("bitwise_not", out, [](T x) { return static_cast<T>(~x); }, {&self});
  });
  return out;
}

Tensor bitwise_left_shift(const Tensor& self, const Tensor& other) {
  return on_integers("bitwise_left_shift", self, other, []<class T>(T a, T b) -> T {
    constexpr int kBits = 8 * sizeof(T);
    const bool outside = (std::is_signed_v<T> && b < T(0)) || static_cast<uint64_t>(b) >= kBits;
    return outside ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << static_cast<uint64_t>(b));
  });
}
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other) {
  return on_integers("bitwise_right_shift", self, other, []<class T>(T a, T b) -> T {
    constexpr int kLast = 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0);
    const bool outside = (std::is_signed_v<T> && b < T(0)) || static_cast<uint64_t>(b) >= kLast;
    if (!outside) return static_cast<T>(a >> b);
    return std::is_signed_v<T> ? static_cast<T>(a >> kLast) : T(0);
  });
}

Tensor floor_divide(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result("floor_divide", {&self, &other}, dtype, dtype);
  if (is_floating(dtype)) {
    require_library(sleef_library());
    const Tensor a = met(self, dtype), b = met_divisor(other, dtype);
    dispatch_floating(dtype, "floor_divide", [&]<class T>() -> void {
      using C = ComputeType<T>;
      const auto f = [](C x, C y) { return floored_quotient(x, y); };
      map_elements<C, C, C>("floor_divide", out, InLanes<decltype(f)>{f}, {&a, &b});
    });
    return out;
  }
  divide_integers("floor_divide", out, self, other, []<class T>(T a, T b) {
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
  });
  return out;
}
Tensor truncate_divide(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result("div", {&self, &other}, dtype, dtype);
  divide_integers("div", out, self, other, []<class T>(T a, T b) { return static_cast<T>(a / b); });
  return out;
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument, "index_select: Index is supposed to be a vector, got ",
               describe(index));
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, kInvalidArgument,
               "index_select: Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()));
  const auto at = static_cast<size_t>(wrap_dim("index_select", dim, self.dim()));
  const Tensor wide = contiguous(to_dtype(index, DType::kInt64));
  const int64_t size = self.dim() ? self.size(static_cast<int64_t>(at)) : 1;
  for (int64_t i = 0; i < wide.numel(); ++i)
    SCONCE_CHECK(wide.data_as<int64_t>()[i] >= 0 && wide.data_as<int64_t>()[i] < size, kInvalidArgument,
                 "index_select: index out of range in self: ", wide.data_as<int64_t>()[i], " of ", size);
  const int64_t count = wide.numel();
  const Tensor positions = reshape(wide, IntSpan(&count, 1));
  if (self.dim() == 0) {
    SCONCE_CHECK(count == 1, kInvalidArgument, "index_select: Index to scalar can have only 1 value, got ", count);
    return clone(self);
  }
  std::vector<const Tensor*> tensors(at + 1, nullptr);
  tensors[at] = &positions;
  std::vector<const Tensor* const*> handles;
  for (const Tensor* const& tensor : tensors) handles.push_back(&tensor);
  return contiguous(index_Tensor(self, OptTensorList(handles.data(), handles.size())));
}

}  // namespace sconce::cpu
