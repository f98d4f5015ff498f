#include "src/cpu/elementwise/division.h"

#include <atomic>
#include <cmath>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/vector/lanes.h"
#include "src/tensor/elementwise.h"

namespace sconce::cpu {
namespace {

// Matches c10::div_floor_floating, which divides like Python's //.
template <class T>
[[gnu::always_inline]] inline T floored_quotient(T a, T b) {
  using simd::choose;
  const T remainder = simd::fmod(a, b), ratio = a / b;
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

}  // namespace sconce::cpu
