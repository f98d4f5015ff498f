#include "src/cpu/elementwise/comparisons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "sconce/check.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/functions.h"
#include "src/operators/cpu_ops.h"

namespace sconce::cpu {
namespace {

enum class Order { kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

Tensor ordered(const char* name, const Tensor& self, const Tensor& other, DType dtype, Order order) {
  Tensor out = make_result(name, {&self, &other}, dtype, DType::kBool);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  // The result is laid out by the operands in their order, which the comparison may turn around.
  const bool turned = order == Order::kGreater || order == Order::kGreaterOrEqual;
  const Tensor &smaller = turned ? b : a, &larger = turned ? a : b;
  dispatch_ordered(dtype, name, [&]<class T>() -> void {
    if (order == Order::kLess || order == Order::kGreater)
      map_elements<bool, T, T>(name, out, [](T x, T y) { return x < y; }, {&smaller, &larger});
    else
      map_elements<bool, T, T>(name, out, [](T x, T y) { return x <= y; }, {&smaller, &larger});
  });
  return out;
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return !is_nan(a) && (a < b || is_nan(b)) ? b : a;
  }
};
struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    return !is_nan(a) && (b < a || is_nan(b)) ? b : a;
  }
};

template <class Test>
Tensor tested(const char* name, const Tensor& self, Test test) {
  Tensor out = make_result(name, {&self}, self.dtype(), DType::kBool);
  dispatch_ordered(self.dtype(), name, [&]<class T>() -> void {
    map_elements<bool, T>(name, out, [test](T x) -> bool { return test(x); }, {&self});
  });
  return out;
}

void check_limit(const char* name, DType dtype) {
  SCONCE_CHECK(!is_complex(dtype), kInvalidArgument, name, ": clamp is not supported for complex types");
}

// A bound of integers in their dtype; none if every integer of the dtype is within it.
std::optional<Scalar> bound_within(const char* name, const Scalar& bound, DType dtype, bool lower) {
  if (!is_integral(dtype, false)) return bound;
  const auto [least, most] = [dtype]() -> std::pair<int64_t, int64_t> {
    if (dtype == DType::kUInt64) return {0, std::numeric_limits<int64_t>::max()};
    return dispatch_integral_wide(dtype, "clamp", []<class T>() -> std::pair<int64_t, int64_t> {
      return {static_cast<int64_t>(std::numeric_limits<T>::lowest()),
              static_cast<int64_t>(std::numeric_limits<T>::max())};
    });
  }();
  const int64_t value = bound.to_int();
  if (value >= least && value <= most) return bound;
  SCONCE_CHECK(lower == (value < least), kInvalidArgument, name, ": Clamp ", lower ? "min" : "max", " value ", value,
               " is outside the representable range of ", dtype_name(dtype));
  return std::nullopt;
}
// A copy as the dtype.
Tensor unbounded(const char* name, const Tensor& self, DType dtype) {
  Tensor out = make_result(name, {&self}, dtype, dtype);
  copy(self, out);
  return out;
}

template <class T>
T largest() {
  return std::numeric_limits<T>::max();
}

}  // namespace

// Defines the comparison of two tensors and that of a tensor with a number.
#define SCONCE_COMPARISON(name, order)                                               \
  Tensor name(const Tensor& self, const Tensor& other) {                             \
    return ordered(#name, self, other, promoted(self, other), order);                \
  }                                                                                  \
  Tensor name##_number(const Tensor& self, Scalar other) {                           \
    return ordered(#name, self, number_tensor(other), promoted(self, other), order); \
  }
SCONCE_COMPARISON(lt, Order::kLess)
SCONCE_COMPARISON(le, Order::kLessOrEqual)
SCONCE_COMPARISON(gt, Order::kGreater)
SCONCE_COMPARISON(ge, Order::kGreaterOrEqual)
#undef SCONCE_COMPARISON

Tensor isposinf(const Tensor& self) {
  return tested("isposinf", self, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return x == std::numeric_limits<decltype(x)>::infinity();
    else
      return false;
  });
}
Tensor isneginf(const Tensor& self) {
  return tested("isneginf", self, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return x == -std::numeric_limits<decltype(x)>::infinity();
    else
      return false;
  });
}
Tensor signbit(const Tensor& self) {
  return tested("signbit", self, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return std::signbit(x);
    else
      return x < decltype(x)(0);
  });
}

namespace {

// Whether ATen compares each element with each test. If there are more tests, it sorts elements and tests together.
bool are_few(int64_t tests, int64_t elements) {
  return tests < static_cast<int64_t>(10.0f * std::pow(static_cast<double>(elements), 0.145));
}

Tensor isin_as(const Tensor& elements, const Tensor& test_elements, bool invert, DType dtype) {
  Tensor out = Tensor::empty(elements.sizes(), DType::kBool);
  const Tensor given = contiguous(to_dtype(test_elements, dtype));
  const Tensor tests = is_floating(dtype) ? to_dtype(given, DType::kFloat64) : given;
  dispatch_ordered(tests.dtype(), "isin", [&]<class T>() -> void {
    const auto sorted = std::make_unique<T[]>(static_cast<size_t>(tests.numel()));
    T* const begin = sorted.get();
    // NaN is in no set.
    T* const end =
        std::copy_if(tests.data_as<T>(), tests.data_as<T>() + tests.numel(), begin, [](T x) { return !is_nan(x); });
    std::sort(begin, end);
    const Tensor in = met(elements, dtype);
    map_elements<bool, T>("isin", out, [=](T x) { return (!is_nan(x) && std::binary_search(begin, end, x)) != invert; },
                          {&in});
  });
  return out;
}
}  // namespace

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  const bool few = are_few(test_elements.numel(), elements.numel());
  return isin_as(elements, test_elements, invert,
                 few ? promoted(elements, test_elements) : promote_types(elements.dtype(), test_elements.dtype()));
}
Tensor isin_number(const Tensor& elements, Scalar test_element, bool, bool invert) {
  return contiguous(invert ? ne_number(elements, test_element) : eq_number(elements, test_element));
}
Tensor isin_of_number(Scalar element, const Tensor& test_elements, bool, bool invert) {
  // If there are many test elements, ATen converts the number to a 64-bit tensor first.
  const DType dtype = are_few(test_elements.numel(), 1) ? promoted(test_elements, element)
                                                        : promote_types(element.dtype(), test_elements.dtype());
  return isin_as(to_dtype(number_tensor(element), dtype), to_dtype(test_elements, dtype), invert, dtype);
}

Tensor maximum(const Tensor& self, const Tensor& other) {
  return map_ordered("maximum", self, other, promoted(self, other), Larger());
}
Tensor minimum(const Tensor& self, const Tensor& other) {
  return map_ordered("minimum", self, other, promoted(self, other), Smaller());
}
Tensor fmax(const Tensor& self, const Tensor& other) {
  return map_ordered("fmax", self, other, promoted(self, other),
                     []<class T>(T a, T b) -> T { return is_nan(b) || a > b ? a : b; });
}
Tensor fmin(const Tensor& self, const Tensor& other) {
  return map_ordered("fmin", self, other, promoted(self, other),
                     []<class T>(T a, T b) -> T { return is_nan(b) || a < b ? a : b; });
}

Tensor clamp_tensor(const Tensor& self, const Tensor* min, const Tensor* max) {
  SCONCE_CHECK(min || max, kInvalidArgument, "clamp: At least one of 'min' or 'max' must not be None");
  if (!min) return clamp_max_tensor(self, *max);
  if (!max) return clamp_min_tensor(self, *min);
  const DType dtype = ResultType().add(self).add(*min).add(*max).get();
  check_limit("clamp", dtype);
  if (dtype == DType::kBool) fail_dispatch(dtype, "clamp");
  Tensor out = make_result("clamp", {&self, min, max}, dtype, dtype);
  const Tensor x = met(self, dtype), low = met(*min, dtype), high = met(*max, dtype);
  dispatch_ordered_wide(dtype, "clamp", [&]<class T>() -> void {
    map_elements<T, T, T, T>("clamp", out,
                             [](T a, T b, T c) -> T {
                               if (is_nan(b)) return b;
                               return Smaller()(Larger()(a, b), c);
                             },
                             {&x, &low, &high});
  });
  return out;
}
Tensor clamp_min_tensor(const Tensor& self, const Tensor& min) {
  const DType dtype = promoted(self, min);
  check_limit("clamp_min", dtype);
  return map_ordered("clamp_min", self, min, dtype, Larger());
}
Tensor clamp_max_tensor(const Tensor& self, const Tensor& max) {
  const DType dtype = promoted(self, max);
  check_limit("clamp_max", dtype);
  return map_ordered("clamp_max", self, max, dtype, Smaller());
}
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  SCONCE_CHECK(min || max, kInvalidArgument, "clamp: At least one of 'min' or 'max' must not be None");
  if (!min) return clamp_max(self, *max);
  if (!max) return clamp_min(self, *min);
  const DType dtype = ResultType().add(self).add_number(*min).add_number(*max).get();
  check_limit("clamp", dtype);
  const Tensor x = to_dtype(self, dtype);
  if (!is_floating(dtype)) {
    if (dtype == DType::kBool) fail_dispatch(dtype, "clamp");
    const auto lower = bound_within("clamp", *min, dtype, true), upper = bound_within("clamp", *max, dtype, false);
    if (!lower) return upper ? clamp_max(x, *upper) : unbounded("clamp", x, dtype);
    if (!upper) return clamp_min(x, *lower);
    const Tensor least = to_dtype(number_tensor(*lower), dtype), most = to_dtype(number_tensor(*upper), dtype);
    return clamp_tensor(x, &least, &most);
  }
  const Tensor low = to_dtype(number_tensor(*min), dtype), high = to_dtype(number_tensor(*max), dtype);
  Tensor out = make_result("clamp", {&x}, dtype, dtype);
  dispatch_computed_float(dtype, "clamp", [&]<class T>() -> void {
    T least, most;
    convert(dtype, low.data(), kDType<T>, &least, 1);
    convert(dtype, high.data(), kDType<T>, &most, 1);
    if (is_nan(most)) least = most;
    if (is_nan(least)) return fill(out, static_cast<double>(least));
    const auto f = [=](T v) {
      const T raised = v < least ? least : v;  // NaN stays
      return raised > most ? most : raised;
    };
    map_elements<T, T>("clamp", out, InLanes<decltype(f)>{f}, {&x});
  });
  return out;
}
Tensor clamp_min(const Tensor& self, Scalar min) {
  const DType dtype = promoted(self, min);
  check_limit("clamp_min", dtype);
  const auto bound = bound_within("clamp_min", min, dtype, true);
  return bound ? clamp_min_tensor(self, to_dtype(number_tensor(*bound), dtype)) : unbounded("clamp_min", self, dtype);
}
Tensor clamp_max(const Tensor& self, Scalar max) {
  const DType dtype = promoted(self, max);
  check_limit("clamp_max", dtype);
  const auto bound = bound_within("clamp_max", max, dtype, false);
  return bound ? clamp_max_tensor(self, to_dtype(number_tensor(*bound), dtype)) : unbounded("clamp_max", self, dtype);
}

Tensor sign(const Tensor& self) {
  SCONCE_CHECK(!is_complex(self.dtype()), kInvalidArgument,
               "sign: Unlike NumPy, torch.sign doesn't allow complex tensors");
  return sgn(self);
}
Tensor heaviside(const Tensor& self, const Tensor& values) {
  SCONCE_CHECK(!is_complex(self.dtype()) && !is_complex(values.dtype()), kInvalidArgument,
               "heaviside: is not yet implemented for complex tensors.");
  SCONCE_CHECK(self.dtype() == values.dtype(), kInvalidArgument,
               "heaviside: is not yet implemented for tensors with different dtypes.");
  return map_ordered("heaviside", self, values, self.dtype(),
                     []<class T>(T a, T b) -> T { return a == T(0) ? b : static_cast<T>(a > T(0)); });
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_integral(self.dtype(), true)) return clone(self);
  if (is_complex(self.dtype())) return view_as_complex(nan_to_num(view_as_real(clone(self)), nan, posinf, neginf));
  Tensor out = make_result("nan_to_num", {&self}, self.dtype(), self.dtype());
  dispatch_computed_float(self.dtype(), "nan_to_num", [&]<class T>() -> void {
    const double most = self.dtype() == DType::kFloat16    ? 65504.0
                        : self.dtype() == DType::kBFloat16 ? 0x1.fep127
                                                           : static_cast<double>(largest<T>());
    const T none = static_cast<T>(nan.value_or(0)), above = static_cast<T>(posinf.value_or(most)),
            below = static_cast<T>(neginf.value_or(-most));
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const auto f = [=](T x) {
      const T bounded = x == kInfinity ? above : x == -kInfinity ? below : x;
      return x != x ? none : bounded;
    };
    map_elements<T, T>("nan_to_num", out, InLanes<decltype(f)>{f}, {&self});
  });
  return out;
}

}  // namespace sconce::cpu
