// Products and quotients of any element type. Complex ones follow c10::complex: products are plain, without C's
// recovery of infinities, which would cost a call per product; division by zero divides each part by 0, whatever the
// zero's signs.
#pragma once

#include "sconce/float_types.h"

namespace sconce {

template <class T>
constexpr T multiply(T a, T b) noexcept {
  if constexpr (kIsComplex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return static_cast<T>(a * b);
}

template <class T>
constexpr T quotient(T a, T b) noexcept {
  if constexpr (kIsComplex<T>) {
    if (b == T(0)) return T(a.real() / 0, a.imag() / 0);
  }
  return static_cast<T>(a / b);
}

}  // namespace sconce
