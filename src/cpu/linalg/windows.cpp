#include "src/cpu/linalg/windows.h"

#include <cmath>

#include "sconce/check.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"

namespace sconce::cpu {
namespace {

// value(i) for i below count, in double and then rounded.
template <class F>
Tensor made(const char* name, int64_t count, const Factory& factory, F value) {
  check_factory(name, factory.layout, factory.device, factory.pin_memory);
  const DType dtype = factory.dtype.value_or(kDefaultDType);
  SCONCE_CHECK(is_floating(dtype) || is_complex(dtype), kInvalidArgument, name, ": expects floating point dtypes, got ",
               dtype_name(dtype));
  Tensor wide = empty_checked(name, IntSpan(&count, 1), DType::kFloat64);
  for (int64_t i = 0; i < count; ++i) wide.data_as<double>()[i] = value(static_cast<double>(i));
  return to_dtype(wide, dtype);
}

// value(i, last) where last is the symmetric window's last place.
template <class F>
Tensor window(const char* name, int64_t length, bool periodic, const Factory& factory, F value) {
  SCONCE_CHECK(length >= 0, kInvalidArgument, name,
               ": requires non-negative window_length, got window_length=", length);
  const auto last = static_cast<double>(periodic ? length : length - 1);
  return made(name, length, factory, [&](double i) { return length == 1 ? 1.0 : value(i, last); });
}

}  // namespace

Tensor bartlett_window(int64_t length, bool periodic, const Factory& factory) {
  return window("bartlett_window", length, periodic, factory, [](double i, double last) {
    const double at = 2 * i / last;
    return at <= 1 ? at : 2 - at;
  });
}

Tensor blackman_window(int64_t length, bool periodic, const Factory& factory) {
  return window("blackman_window", length, periodic, factory, [](double i, double last) {
    const double at = M_PI * i / last;
    return 0.42 - 0.5 * std::cos(2 * at) + 0.08 * std::cos(4 * at);
  });
}

Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, const Factory& factory) {
  return window("hamming_window", length, periodic, factory,
                [=](double i, double last) { return alpha - beta * std::cos(2 * M_PI * i / last); });
}

Tensor kaiser_window(int64_t length, bool periodic, double beta, const Factory& factory) {
  const double whole = std::cyl_bessel_i(0.0, std::fabs(beta));
  return window("kaiser_window", length, periodic, factory, [=](double i, double last) {
    const double at = 2 * i / last - 1, inside = std::fmax(0.0, 1 - at * at);
    return std::cyl_bessel_i(0.0, std::fabs(beta) * std::sqrt(inside)) / whole;
  });
}

Tensor fft_fftfreq(int64_t n, double d, const Factory& factory) {
  const double step = 1.0 / (static_cast<double>(n) * d);
  const auto positive = static_cast<double>((n + 1) / 2);
  return made("fft_fftfreq", n, factory,
              [=](double i) { return (i < positive ? i : i - static_cast<double>(n)) * step; });
}
Tensor fft_rfftfreq(int64_t n, double d, const Factory& factory) {
  const double step = 1.0 / (static_cast<double>(n) * d);
  return made("fft_rfftfreq", n / 2 + 1, factory, [=](double i) { return i * step; });
}

}  // namespace sconce::cpu
