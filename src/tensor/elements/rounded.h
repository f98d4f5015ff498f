// Arithmetic that rounds to the elements' precision after every operation, as c10::Half's does. For host and device
// code.
#pragma once

#include <type_traits>

#include "src/tensor/elements/host_device.h"

namespace sconce {

// A value of the small float type T, held as the equal float. T converts from and to float.
template <class T>
class Rounded {
 public:
  Rounded() = default;
  SCONCE_HOST_DEVICE explicit Rounded(T value) noexcept : value_(static_cast<float>(value)) {}
  SCONCE_HOST_DEVICE explicit Rounded(float value) noexcept : Rounded(T(value)) {}
  SCONCE_HOST_DEVICE explicit Rounded(double value) noexcept : Rounded(static_cast<float>(value)) {}

  SCONCE_HOST_DEVICE explicit operator float() const noexcept { return value_; }
  SCONCE_HOST_DEVICE explicit operator T() const noexcept { return T(value_); }

  SCONCE_HOST_DEVICE friend Rounded operator+(Rounded a, Rounded b) noexcept { return Rounded(a.value_ + b.value_); }
  SCONCE_HOST_DEVICE friend Rounded operator-(Rounded a, Rounded b) noexcept { return Rounded(a.value_ - b.value_); }
  SCONCE_HOST_DEVICE friend Rounded operator*(Rounded a, Rounded b) noexcept { return Rounded(a.value_ * b.value_); }
  SCONCE_HOST_DEVICE friend Rounded operator/(Rounded a, Rounded b) noexcept { return Rounded(a.value_ / b.value_); }
  SCONCE_HOST_DEVICE friend bool operator<(Rounded a, Rounded b) noexcept { return a.value_ < b.value_; }
  SCONCE_HOST_DEVICE friend bool operator>(Rounded a, Rounded b) noexcept { return a.value_ > b.value_; }

 private:
  float value_;
};

// The type in which elements of T are computed: T itself, where C++ rounds to it.
template <class T>
using RoundedNumber = std::conditional_t<std::is_floating_point_v<T>, T, Rounded<T>>;
// A type that holds every T and in which C++ rounds, floors and compares: double for double, else float.
template <class T>
using PlainNumber = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace sconce
