#include "src/cpu/reduction/moments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/vector/row_sums.h"
#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elements/multiply.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/reduced_rows.h"

namespace sconce::cpu {
namespace {

template <class T>
using Wide = Total<T>;

// out[i] = f(row, width, i)
template <class T, class F>
void for_rows(const ReducedRows& reduced, int64_t count, const F& f) {
  const T* const in = reduced.rows.data_as<T>();
  const int64_t width = reduced.width;
  parallel_for(0, count, std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t i = begin; i < end; ++i) f(in + i * width, width, i);
               });
}

template <class T>
Wide<T> mean_of(const T* row, int64_t width) noexcept {
  return blockwise<Wide<T>>(width, [row](int64_t j) { return static_cast<Wide<T>>(row[j]); }) /
         static_cast<double>(width);
}

// Behaves like ATen's running mean: after an infinity, the next element makes it NaN.
template <class T>
double settled(const T* row, int64_t width, double mean, double (*part)(T)) noexcept {
  if (!std::isinf(mean)) return mean;
  const bool last_alone = std::all_of(row, row + width - 1, [part](T x) { return std::isfinite(part(x)); });
  return last_alone ? mean : std::numeric_limits<double>::quiet_NaN();
}
template <class T>
Wide<T> settled(const T* row, int64_t width, Wide<T> mean) noexcept {
  if constexpr (kIsComplex<T>)
    return {settled<T>(row, width, mean.real(), [](T x) { return static_cast<double>(x.real()); }),
            settled<T>(row, width, mean.imag(), [](T x) { return static_cast<double>(x.imag()); })};
  else
    return settled<T>(row, width, mean, [](T x) { return static_cast<double>(x); });
}

double squared(double value) noexcept { return value * value; }
double squared(ComplexDouble value) noexcept { return squared(value.real()) + squared(value.imag()); }

void check_inexact(const char* name, DType dtype) {
  SCONCE_CHECK(is_floating(dtype) || is_complex(dtype), kInvalidArgument, name,
               ": only support floating point and complex dtypes, got ", dtype_name(dtype));
}

}  // namespace

Tensor prod(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype());
  const ReducedRows reduced = reduced_rows("prod", self, dim, keepdim, type);
  Tensor out = Tensor::empty(reduced.sizes, type);
  dispatch_all_no_small(type, "prod", [&]<class T>() -> void {
    T* const to = out.data_as<T>();
    for_rows<T>(reduced, out.numel(), [to](const T* row, int64_t width, int64_t i) noexcept {
      Wide<T> product = 1;
      int64_t j = 0;
      if constexpr (std::is_floating_point_v<T>) {
        // Several products at once, also of the lanes: one waits for the multiplication before.
        constexpr int64_t kLanes = 32, kTotals = 8;
        T lanes[kLanes];
        std::fill_n(lanes, kLanes, T(1));
        for (; j + kLanes <= width; j += kLanes)
          for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] *= row[j + lane];
        if (j > 0) {
          double totals[kTotals];
          for (int64_t t = 0; t < kTotals; ++t)
            totals[t] = (static_cast<double>(lanes[t]) * static_cast<double>(lanes[t + kTotals])) *
                        (static_cast<double>(lanes[t + 2 * kTotals]) * static_cast<double>(lanes[t + 3 * kTotals]));
          for (int64_t half = kTotals / 2; half > 0; half /= 2)
            for (int64_t t = 0; t < half; ++t) totals[t] *= totals[t + half];
          product = totals[0];
        }
      }
      for (; j < width; ++j) {
        if constexpr (std::is_integral_v<T>)  // wraps
          product = static_cast<int64_t>(static_cast<uint64_t>(product) * static_cast<uint64_t>(row[j]));
        else
          product = multiply(product, static_cast<Wide<T>>(row[j]));
      }
      to[i] = convert_value<T>(product);
    });
  });
  return out;
}

std::array<Tensor, 2> var_mean(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction,
                               bool keepdim) {
  check_inexact("var", self.dtype());
  if (self.dtype() == DType::kComplex32) {
    const auto [variance, mean] = var_mean(to_dtype(self, DType::kComplex64), dim, correction, keepdim);
    return {to_dtype(variance, DType::kFloat16), to_dtype(mean, DType::kComplex32)};
  }
  const double less = correction ? correction->to_double() : 1.0;
  const ReducedRows reduced = reduced_rows("var", self, dim, keepdim, self.dtype());
  Tensor variance = Tensor::empty(reduced.sizes, value_dtype(self.dtype()));
  Tensor mean = Tensor::empty(reduced.sizes, self.dtype());
  const auto run = [&]<class T, class Real>() {
    auto* const to = variance.data_as<Real>();
    T* const middle = mean.data_as<T>();
    for_rows<T>(reduced, mean.numel(), [to, middle, less](const T* row, int64_t width, int64_t i) noexcept {
      Wide<T> average = settled(row, width, mean_of(row, width));
      const auto apart = [row, average](int64_t j) { return static_cast<Wide<T>>(row[j]) - average; };
      double total = blockwise<double>(width, [&apart](int64_t j) { return squared(apart(j)); });
      // Corrects the first mean: in long rows, its rounding error would show in small deviations.
      if (std::isfinite(total)) {
        const Wide<T> beside = blockwise<Wide<T>>(width, apart) / static_cast<double>(width);
        average += beside;
        total = std::max(total - static_cast<double>(width) * squared(beside), 0.0);
      }
      to[i] = convert_value<Real>(total / std::max(static_cast<double>(width) - less, 0.0));
      middle[i] = convert_value<T>(average);
    });
  };
  if (self.dtype() == DType::kComplex64)
    run.operator()<ComplexFloat, float>();
  else if (self.dtype() == DType::kComplex128)
    run.operator()<ComplexDouble, double>();
  else
    dispatch_floating(self.dtype(), "var", [&]<class T>() -> void { run.template operator()<T, T>(); });
  return {variance, mean};
}

Tensor var(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction, bool keepdim) {
  return var_mean(self, dim, correction, keepdim)[0];
}

namespace {

// One byte a row, of how memchr finds `sought` in it.
Tensor truth_of(const char* name, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, bool sought) {
  const DType type = self.dtype() == DType::kUInt8 ? DType::kUInt8 : DType::kBool;
  // An empty list names no dimension; for a sum it names all.
  if (dim && dim->empty()) return to_dtype(clone_contiguous(to_dtype(self, DType::kBool)), type);
  const ReducedRows reduced = reduced_rows(name, self, dim, keepdim, DType::kBool);
  Tensor out = Tensor::empty(reduced.sizes, type);
  auto* const to = static_cast<uint8_t*>(out.data());
  for_rows<bool>(reduced, out.numel(), [to, sought](const bool* row, int64_t width, int64_t i) noexcept {
    const bool found = std::memchr(row, sought ? 1 : 0, static_cast<size_t>(width)) != nullptr;
    to[i] = found == sought;
  });
  return out;
}

}  // namespace

Tensor any(const Tensor& self, std::optional<IntSpan> dim, bool keepdim) {
  return truth_of("any", self, dim, keepdim, true);
}
Tensor all(const Tensor& self, std::optional<IntSpan> dim, bool keepdim) {
  return truth_of("all", self, dim, keepdim, false);
}

}  // namespace sconce::cpu
