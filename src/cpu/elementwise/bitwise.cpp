#include "src/cpu/elementwise/bitwise.h"

#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/functions.h"
#include "src/tensor/elementwise.h"

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

}  // namespace sconce::cpu
