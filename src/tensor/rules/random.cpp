#include "src/tensor/rules/random.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sconce/check.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {
namespace {

template <class T>
constexpr int kDigits = std::is_same_v<T, double>  ? 53
                        : std::is_same_v<T, float> ? 24
                        : std::is_same_v<T, Half>  ? 11
                                                   : 8;

// The integer rounded to T; INT64_MIN if the result is out of range, as the hardware converts.
template <class T>
int64_t rounded(int64_t integer) {
  const ComputeType<T> value = T(static_cast<ComputeType<T>>(integer));
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}
// Bounds that T can hold for integers drawn from [from, to): T may round an integer out of the range.
template <class T>
int64_t round_from(int64_t from) {
  const int64_t above = rounded<T>(from + 1);
  if (above >= from) return from;
  const int log2 = 63 - std::countl_zero(static_cast<uint64_t>(std::abs(from + 1)) | 1);
  return above + (int64_t{1} << (log2 - kDigits<T> + 1));
}
template <class T>
int64_t round_to(int64_t to) {
  const int64_t below = rounded<T>(to - 1);
  if (below < to) return to;
  const int log2 = 63 - std::countl_zero(static_cast<uint64_t>(std::abs(to - 1)) | 1);
  return below - (int64_t{1} << (log2 - kDigits<T> + 1));
}

void check_integer_bounds(DType dtype, int64_t from, int64_t last) {
  const auto check = [&](auto low, auto high) {
    SCONCE_CHECK(from >= low && from <= high, kInvalidArgument, "random: from ", from, " is out of bounds for ",
                 dtype_name(dtype));
    SCONCE_CHECK(last >= low && last <= high, kInvalidArgument, "random: to - 1 = ", last, " is out of bounds for ",
                 dtype_name(dtype));
  };
  if (is_floating(dtype))
    return dispatch_floating(dtype, "random", [&]<class T>() -> void { check(-kMaxOf<T>, kMaxOf<T>); });
  if (dtype == DType::kUInt64) return check(int64_t{0}, std::numeric_limits<int64_t>::max());
  if (dtype == DType::kBool) return check(int64_t{0}, int64_t{1});
  SCONCE_CHECK(is_integral(dtype, false), kUnsupported, "random: integers cannot be drawn as ", dtype_name(dtype));
  dispatch_integral_wide(dtype, "random", [&]<class T>() -> void {
    check(static_cast<int64_t>(std::numeric_limits<T>::lowest()), static_cast<int64_t>(std::numeric_limits<T>::max()));
  });
}

}  // namespace

int64_t last_integer(DType dtype) {
  if (dtype == DType::kBool) return 1;
  if (dtype == DType::kUInt64) return std::numeric_limits<int64_t>::max();
  if (is_floating(dtype))
    return dispatch_floating(dtype, "random", []<class T>() -> int64_t { return int64_t{1} << kDigits<T>; });
  return dispatch_integral_wide(
      dtype, "random", []<class T>() -> int64_t { return static_cast<int64_t>(std::numeric_limits<T>::max()); });
}

IntegerRange integer_range(DType dtype, int64_t from, int64_t to) {
  SCONCE_CHECK(from < to, kInvalidArgument, "random: 'from' ", from, " is not less than 'to' ", to);
  if (is_floating(dtype))
    dispatch_floating(dtype, "random", [&]<class T>() -> void {
      from = round_from<T>(from);
      to = round_to<T>(to);
      SCONCE_CHECK(from < to, kInvalidArgument, "random: 'from' ", from, " is not less than 'to' ", to, " as ",
                   dtype_name(dtype));
    });
  check_integer_bounds(dtype, from, to - 1);
  return {static_cast<uint64_t>(to) - static_cast<uint64_t>(from), from};
}

IntegerRange integer_range_from(DType dtype, int64_t from) {
  const int64_t last = last_integer(dtype);
  if (is_floating(dtype)) dispatch_floating(dtype, "random", [&]<class T>() -> void { from = round_from<T>(from); });
  SCONCE_CHECK(from <= last, kInvalidArgument, "random: 'from' ", from, " is greater than the last ", last, " of ",
               dtype_name(dtype));
  check_integer_bounds(dtype, from, last);
  return {static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1, from};
}

Shape multinomial_sizes(const Tensor& self, int64_t num_samples, bool replacement) {
  SCONCE_CHECK(self.dim() == 1 || self.dim() == 2, kInvalidArgument, "multinomial: prob_dist must be 1 or 2 dim");
  SCONCE_CHECK(is_floating(self.dtype()), kInvalidArgument,
               "multinomial: only supports floating-point dtypes for input, got: ", dtype_name(self.dtype()));
  SCONCE_CHECK(num_samples > 0, kInvalidArgument, "multinomial: cannot sample n_sample <= 0 samples");
  const int64_t n = self.size(self.dim() - 1);
  SCONCE_CHECK(replacement || num_samples <= n, kInvalidArgument,
               "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  SCONCE_CHECK(n <= int64_t{1} << 24, kInvalidArgument, "multinomial: number of categories cannot exceed 2^24");
  Shape sizes(self.sizes());
  sizes[static_cast<int>(self.dim()) - 1] = num_samples;
  return sizes;
}

}  // namespace sconce
