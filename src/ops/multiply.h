// Products of any element type. Complex ones follow c10::complex: plain, without C's recovery of infinities, which
// would cost a call per product.
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

}  // namespace sconce
