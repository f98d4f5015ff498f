#include "src/tensor/scalar.h"

#include <type_traits>

#include "sconce/check.h"
#include "src/tensor/fill.h"

namespace sconce {

double Scalar::to_double() const noexcept {
  return visit([](auto value) -> double {
    if constexpr (std::is_same_v<decltype(value), std::complex<double>>)
      return value.real();
    else
      return static_cast<double>(value);
  });
}

std::complex<double> Scalar::to_complex() const noexcept {
  return is_complex() ? std::get<std::complex<double>>(value_) : std::complex<double>(to_double(), 0);
}

int64_t Scalar::to_int() const {
  if (is_bool()) return std::get<bool>(value_);
  if (is_integral()) return std::get<int64_t>(value_);
  const std::complex<double> value = to_complex();
  SCONCE_CHECK(value.imag() == 0 && value.real() >= -0x1p63 && value.real() < 0x1p63, kInvalidArgument,
               "value cannot be converted to type int64_t without overflow");
  return static_cast<int64_t>(value.real());
}

Tensor number_tensor(const Scalar& number) {
  Tensor tensor = Tensor::empty({}, number.dtype());
  number.visit([&](auto value) { *tensor.data_as<decltype(value)>() = value; });
  return tensor;
}

void fill(Tensor& self, const Scalar& value) {
  value.visit([&](auto number) {
    if constexpr (std::is_same_v<decltype(number), bool>)
      fill(self, static_cast<int64_t>(number));
    else
      fill(self, number);
  });
}

}  // namespace sconce
