// Functions of numbers in a form that GCC vectorises: in a loop, simd::sin(x) becomes calls of SLEEF's function for
// vectors of the loop's width. A single call, and the last few elements of a row, use libm. Accurate to 1 ulp like
// ATen's, which call the same functions; quick_* are as vector_math.h describes for float.
//
// require_library(sleef_library()) before the first call. Compute both sides of a condition and choose with choose():
// a call within a branch prevents vectorisation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sconce/float_types.h"
#include "src/cpu/vector/circular.h"
#include "src/cpu/vector/error_function.h"
#include "src/cpu/vector/logarithms.h"
#include "src/cpu/vector/vector_math.h"
#include "src/device/cpu_isa.h"
#include "src/device/sleef.h"

#if defined(__clang__)
#define SCONCE_LANE_FUNCTION [[gnu::const, gnu::nothrow]]
#else
#define SCONCE_LANE_FUNCTION [[gnu::simd("notinbranch"), gnu::const, gnu::nothrow]]
#endif

extern "C" {
#define SCONCE_LANES_v(function)                                \
  SCONCE_LANE_FUNCTION float sconce_lane_##function##_f(float); \
  SCONCE_LANE_FUNCTION double sconce_lane_##function##_d(double);
#define SCONCE_LANES_vv(function)                                      \
  SCONCE_LANE_FUNCTION float sconce_lane_##function##_f(float, float); \
  SCONCE_LANE_FUNCTION double sconce_lane_##function##_d(double, double);
#define SCONCE_LANES(function, parameters, name, accuracy) SCONCE_LANES_##parameters(function)
#include "src/device/sleef_lanes.def"
#undef SCONCE_LANES
#undef SCONCE_LANES_v
#undef SCONCE_LANES_vv
}

namespace sconce::simd {

#define SCONCE_LANES_v(function)                                                                  \
  [[gnu::always_inline]] inline float function(float x) { return sconce_lane_##function##_f(x); } \
  [[gnu::always_inline]] inline double function(double x) { return sconce_lane_##function##_d(x); }
#define SCONCE_LANES_vv(function)                                                                             \
  [[gnu::always_inline]] inline float function(float x, float y) { return sconce_lane_##function##_f(x, y); } \
  [[gnu::always_inline]] inline double function(double x, double y) { return sconce_lane_##function##_d(x, y); }
#define SCONCE_LANES(function, parameters, name, accuracy) SCONCE_LANES_##parameters(function)
#include "src/device/sleef_lanes.def"
#undef SCONCE_LANES
#undef SCONCE_LANES_v
#undef SCONCE_LANES_vv

[[gnu::always_inline]] inline float quick_exp(float x) { return exponential(x); }
[[gnu::always_inline]] inline double quick_exp(double x) { return exp(x); }
[[gnu::always_inline]] inline float quick_tanh(float x) { return hyperbolic_tangent(x); }
[[gnu::always_inline]] inline double quick_tanh(double x) { return hyperbolic_tangent(x); }
// Without SLEEF for float.
#define SCONCE_QUICK(function, of_float)                                                \
  [[gnu::always_inline]] inline float quick_##function(float x) { return of_float(x); } \
  [[gnu::always_inline]] inline double quick_##function(double x) { return function(x); }
SCONCE_QUICK(acos, arc_cosine)
SCONCE_QUICK(asin, arc_sine)
SCONCE_QUICK(atan, arc_tangent)
// Where has_logarithm(x).
SCONCE_QUICK(log, logarithm)
SCONCE_QUICK(log2, logarithm2)
SCONCE_QUICK(log10, logarithm10)
// Where has_logarithm1p(x), or NaN.
SCONCE_QUICK(log1p, logarithm1p)
// Up to kMaxOfAngle.
SCONCE_QUICK(cos, cosine)
SCONCE_QUICK(sin, sine)
SCONCE_QUICK(tan, tangent)
#undef SCONCE_QUICK
[[gnu::always_inline]] inline float quick_erf(float x) { return error_function(x); }
[[gnu::always_inline]] inline double quick_erf(double x) { return error_function(x); }
[[gnu::always_inline]] inline float quick_erfc(float x) { return complementary_error_function(x); }
[[gnu::always_inline]] inline double quick_erfc(double x) { return erfc(x); }
// The error function of x for callers that add 1 to it, so that a coarse one suffices. power: e^(-x^2).
[[gnu::always_inline]] inline float coarse_erf(float x, float power) { return coarse_error_function(x, power); }
[[gnu::always_inline]] inline double coarse_erf(double x, double) { return error_function(x); }
template <class T>
[[gnu::always_inline]] inline T quick_sigmoid(T x) {
  return T(1) / (T(1) + quick_exp(-x));
}

// condition ? a : b, both of them computed.
template <class T>
[[gnu::always_inline]] inline T choose(bool condition, T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const Bits mask = -static_cast<Bits>(condition);
  return std::bit_cast<T>((std::bit_cast<Bits>(a) & mask) | (std::bit_cast<Bits>(b) & ~mask));
}

}  // namespace sconce::simd

namespace sconce {

// f for map_elements: rows with the widest vectors of the CPU; bfloat16 is converted within the computation. f may
// have an AVX-512 version: f.wide_row(count, out, in...).
template <class F>
struct InLanes {
  using OnBFloat16 = void;
  F f;
  template <class... In>
  auto operator()(In... in) const {
    return f(in...);
  }
  template <class Out, class... In>
  void row(int64_t count, Out* out, const In*... in) const noexcept {
    if constexpr (requires { f.wide_row(count, out, in...); })
      if (has_avx512()) return f.wide_row(count, out, in...);
    has_avx512() ? wide(count, out, in...) : narrow(count, out, in...);
  }
  template <class... In>
  void bfloat16_row(int64_t count, BFloat16* out, const In*... in) const noexcept {
    constexpr int64_t kBlock = 256;
    const auto run = has_avx512() ? &InLanes::wide_block<In...> : &InLanes::narrow_block<In...>;
    for (int64_t begin = 0; begin < count; begin += kBlock)
      (this->*run)(std::min(kBlock, count - begin), out + begin, in + begin...);
  }
  template <class Out, class... In>
  [[gnu::flatten]] void narrow(int64_t count, Out* out, const In*... in) const noexcept {
    const F held = f;  // so that no store can modify it
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = held(in[i]...);
  }
  template <class Out, class... In>
  [[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void wide(
      int64_t count, Out* out, const In*... in) const noexcept {
    const F held = f;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = held(in[i]...);
  }

 private:
  // At most 256 elements.
  template <class... In>
  [[gnu::always_inline]] inline void block(int64_t count, BFloat16* out, const In*... in) const noexcept {
    const F held = f;
    [&]<size_t... I>(std::index_sequence<I...>) {
      alignas(64) float values[sizeof...(In)][256], result[256];
      (widen(count, in, values[I]), ...);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) result[i] = held(values[I][i]...);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = BFloat16(result[i]);
    }
    (std::index_sequence_for<In...>());
  }
  [[gnu::always_inline]] static inline void widen(int64_t count, const BFloat16* from, float* to) noexcept {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
  }
  template <class... In>
  [[gnu::flatten]] void narrow_block(int64_t count, BFloat16* out, const In*... in) const noexcept {
    block(count, out, in...);
  }
  template <class... In>
  [[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
  wide_block(int64_t count, BFloat16* out, const In*... in) const noexcept {
    block(count, out, in...);
  }
};

// As above, but uses plain(x...), one element at a time, if beyond(x...) reports numbers outside the range of SLEEF's
// function.
template <class F, class Beyond, class Plain>
struct InLanesWithin {
  using OnBFloat16 = void;
  F f;
  Beyond beyond;
  Plain plain;
  template <class... In>
  auto operator()(In... in) const {
    return plain(in...);
  }
  // out must not overlap an input.
  template <class Out, class... In>
  void row(int64_t count, Out* out, const In*... in) const noexcept {
    InLanes<F>{f}.row(count, out, in...);
    mend(count, out, in...);
  }
  template <class... In>
  void bfloat16_row(int64_t count, BFloat16* out, const In*... in) const noexcept {
    InLanes<F>{f}.bfloat16_row(count, out, in...);
    mend(count, out, in...);
  }

 private:
  template <class T>
  static auto computed(T x) noexcept {
    if constexpr (std::is_same_v<T, BFloat16>)
      return static_cast<float>(x);
    else
      return x;
  }
  template <class Out, class... In>
  void mend(int64_t count, Out* out, const In*... in) const noexcept {
    bool any = false;
    for (int64_t i = 0; i < count; ++i) any |= beyond(computed(in[i])...);
    for (int64_t i = 0; any && i < count; ++i)
      if (beyond(computed(in[i])...)) out[i] = Out(plain(computed(in[i])...));
  }
};

// f, a short function, but general(x...) if outside(x...) reports that f does not apply; all three for SIMD lanes. The
// elements of a block are tested together, so that rows inside the range cost little more than f.
template <class F, class Outside, class General>
struct InLanesUnless {
  using OnBFloat16 = void;
  F f;
  Outside outside;
  General general;
  template <class... T>
  auto operator()(T... x) const {
    return outside(x...) ? general(x...) : f(x...);
  }
  template <class T, class... In>
  void row(int64_t count, T* out, const In*... in) const noexcept {
    for (int64_t begin = 0; begin < count; begin += kBlock)
      block(std::min(kBlock, count - begin), out + begin, in + begin...);
  }
  template <class... In>
  void bfloat16_row(int64_t count, BFloat16* out, const In*... in) const noexcept {
    alignas(64) float values[sizeof...(In)][kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      [&]<size_t... I>(std::index_sequence<I...>) {
        (widen(n, in + begin, values[I]), ...);
        block(n, values[0], static_cast<const float*>(values[I])...);
      }
      (std::index_sequence_for<In...>());
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[begin + i] = BFloat16(values[0][i]);
    }
  }

 private:
  static constexpr int64_t kBlock = 1024;

  static void widen(int64_t count, const BFloat16* from, float* to) noexcept {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
  }
  // In numbers as wide as the elements, so that the loop vectorises.
  template <class In, class... More>
  [[gnu::always_inline]] inline bool count_outside(int64_t count, const In* in, const More*... more) const noexcept {
    using Bits = std::conditional_t<sizeof(In) == 4, int32_t, int64_t>;
    const Outside held = outside;
    Bits any = 0;
    for (int64_t i = 0; i < count; ++i) any |= held(in[i], more[i]...) ? Bits{1} : Bits{0};
    return any != 0;
  }
  template <class... In>
  [[gnu::flatten]] bool any_outside(int64_t count, const In*... in) const noexcept {
    return count_outside(count, in...);
  }
  template <class... In>
  [[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) bool
  any_outside_wide(int64_t count, const In*... in) const noexcept {
    return count_outside(count, in...);
  }
  // out may be one of the inputs.
  template <class T, class... In>
  void block(int64_t count, T* out, const In*... in) const noexcept {
    if (!(has_avx512() ? any_outside_wide(count, in...) : any_outside(count, in...)))
      return InLanes<F>{f}.row(count, out, in...);
    alignas(64) T inside[kBlock], others[kBlock];
    InLanes<F>{f}.row(count, inside, in...);
    InLanes<General>{general}.row(count, others, in...);
    for (int64_t i = 0; i < count; ++i) out[i] = outside(in[i]...) ? others[i] : inside[i];
  }
};

// The limits of SLEEF's functions of these types: hyperbolic ones, their inverses, log1p.
template <class T>
constexpr T kMaxOfPower = std::is_same_v<T, float> ? T(88) : T(709);
template <class T>
constexpr T kMaxOfSquare = std::is_same_v<T, float> ? T(1e19) : T(1e154);
template <class T>
constexpr T kMaxOfLog1p = std::is_same_v<T, float> ? T(1e37) : T(1e306);

}  // namespace sconce
