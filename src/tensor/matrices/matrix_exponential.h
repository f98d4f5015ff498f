// The steps of a matrix exponential, independent of the device's product: a Taylor polynomial of degree 18 (by
// Paterson and Stockmeyer) of the matrix scaled by a power of two, squared the same number of times.
#pragma once

#include <cmath>

#include "sconce/dtype.h"
#include "sconce/tensor.h"

namespace sconce {

// The number of times that a matrix of this norm is halved and its exponential squared. Below the resulting norm,
// degree 18 is exact to the dtype's precision (Bader, Blanes, Casas 2019). The norm is finite.
inline int exponential_squarings(DType dtype, double norm) {
  const double exact_below =
      dtype == DType::kFloat32 || dtype == DType::kComplex64 ? 3.010066362817634 : 1.090863719290036;
  return norm > exact_below ? static_cast<int>(std::ceil(std::log2(norm / exact_below))) : 0;
}

// product(a, b); scaled(a, factor); sum(a, b, factor): a + b * factor.
template <class Product, class Scaled, class Sum>
Tensor exponential_polynomial(const Tensor& a, const Tensor& identity, Product product, Scaled scaled, Sum sum) {
  constexpr int kDegree = 18, kBlock = 4;
  Tensor powers[kBlock];  // a to the 1 ... 4
  powers[0] = a;
  for (int i = 1; i < kBlock; ++i) powers[i] = product(powers[i - 1], a);
  double factorials[kDegree + 1] = {1};
  for (int i = 1; i <= kDegree; ++i) factorials[i] = factorials[i - 1] * i;
  const auto block = [&](int first) {  // sum of a^j / (first + j)!
    Tensor all = scaled(identity, 1 / factorials[first]);
    for (int j = 1; j < kBlock && first + j <= kDegree; ++j) all = sum(all, powers[j - 1], 1 / factorials[first + j]);
    return all;
  };
  int first = kDegree / kBlock * kBlock;
  Tensor result = block(first);
  while (first > 0) {
    first -= kBlock;
    result = sum(block(first), product(result, powers[kBlock - 1]), int64_t{1});
  }
  return result;
}

}  // namespace sconce
