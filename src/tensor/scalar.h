// Scalar: a number argument of an operator, with its original kind (at::Scalar).
#pragma once

#include <complex>
#include <cstdint>
#include <variant>

#include "sconce/tensor.h"

namespace sconce {

class Scalar {
 public:
  Scalar(bool value) noexcept : value_(value) {}
  Scalar(int64_t value) noexcept : value_(value) {}
  Scalar(double value) noexcept : value_(value) {}
  Scalar(std::complex<double> value) noexcept : value_(value) {}

  bool is_bool() const noexcept { return std::holds_alternative<bool>(value_); }
  bool is_integral() const noexcept { return std::holds_alternative<int64_t>(value_); }
  bool is_floating() const noexcept { return std::holds_alternative<double>(value_); }
  bool is_complex() const noexcept { return std::holds_alternative<std::complex<double>>(value_); }

  // bool, int64, float64 or complex128: the dtype of a 0-d tensor of the number.
  DType dtype() const noexcept {
    return is_bool()       ? DType::kBool
           : is_integral() ? DType::kInt64
           : is_floating() ? DType::kFloat64
                           : DType::kComplex128;
  }
  // The imaginary part is dropped.
  double to_double() const noexcept;
  std::complex<double> to_complex() const noexcept;
  // kInvalidArgument if the number is not whole, not real or too large.
  int64_t to_int() const;

  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), value_);
  }

 private:
  std::variant<bool, int64_t, double, std::complex<double>> value_;
};

// A 0-d tensor of the number.
Tensor number_tensor(const Scalar& number);
// fill_ with the checks of fill.h.
void fill(Tensor& self, const Scalar& value);

}  // namespace sconce
