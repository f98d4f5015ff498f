// Norms of differences and their slopes, for cdist and pdist, in host and device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/tensor/elements/host_device.h"

namespace sconce {

template <class T>
SCONCE_HOST_DEVICE T sign_of(T value) noexcept {
  return value != value ? value : static_cast<T>((value > 0) - (value < 0));
}

// Norms of differences: the summand, how it is added, the final step for the sum, and the derivative by one element.
template <class T>
struct NormZero {
  SCONCE_HOST_DEVICE static T map(T d, T) noexcept { return d != d ? d : static_cast<T>(d > 0); }
  SCONCE_HOST_DEVICE static T join(T sum, T d) noexcept { return sum + d; }
  SCONCE_HOST_DEVICE static T finish(T sum, T) noexcept { return sum; }
};
template <class T>
struct NormOne {
  SCONCE_HOST_DEVICE static T map(T d, T) noexcept { return d; }
  SCONCE_HOST_DEVICE static T join(T sum, T d) noexcept { return sum + d; }
  SCONCE_HOST_DEVICE static T finish(T sum, T) noexcept { return sum; }
  SCONCE_HOST_DEVICE static T slope(T d, T grad, T, T) noexcept { return grad * sign_of(d); }
};
template <class T>
struct NormTwo {
  SCONCE_HOST_DEVICE static T map(T d, T) noexcept { return d * d; }
  SCONCE_HOST_DEVICE static T join(T sum, T d) noexcept { return sum + d; }
  SCONCE_HOST_DEVICE static T finish(T sum, T) noexcept { return std::sqrt(sum); }
  SCONCE_HOST_DEVICE static T slope(T d, T grad, T distance, T) noexcept {
    return distance == 0 ? T(0) : grad * d / distance;
  }
};
template <class T>
struct NormLargest {
  SCONCE_HOST_DEVICE static T map(T d, T) noexcept { return d; }
  SCONCE_HOST_DEVICE static T join(T sum, T d) noexcept { return sum < d || d != d ? d : sum; }
  SCONCE_HOST_DEVICE static T finish(T sum, T) noexcept { return sum; }
  SCONCE_HOST_DEVICE static T slope(T d, T grad, T distance, T) noexcept {
    const T apart = std::ceil(std::abs(std::abs(d) - distance));
    return grad * sign_of(d) * (1 - (apart < 1 ? apart : T(1)));
  }
};
template <class T>
struct NormPower {
  SCONCE_HOST_DEVICE static T map(T d, T p) noexcept { return std::pow(d, p); }
  SCONCE_HOST_DEVICE static T join(T sum, T d) noexcept { return sum + d; }
  SCONCE_HOST_DEVICE static T finish(T sum, T p) noexcept { return static_cast<T>(std::pow(sum, 1.0 / p)); }
  SCONCE_HOST_DEVICE static T slope(T d, T grad, T distance, T p) noexcept {
    return distance == 0 ? T(0) : d * std::pow(std::abs(d), p - 2) * grad / std::pow(distance, p - 1);
  }
};
template <class T>
struct NormSmallPower {
  SCONCE_HOST_DEVICE static T slope(T d, T grad, T distance, T p) noexcept {
    if (distance == 0 || (d == 0 && p < 1)) return 0;
    return sign_of(d) * std::pow(std::abs(d), p - 1) * grad / std::pow(distance, p - 1);
  }
};

// Calls f with the norm of p.
template <class T, class F>
void with_norm(double p, F&& f) {
  if (p == 0) return f(NormZero<T>());
  if (p == 1) return f(NormOne<T>());
  if (p == 2) return f(NormTwo<T>());
  if (std::isinf(p)) return f(NormLargest<T>());
  f(NormPower<T>());
}
template <class T, class F>
void with_slope(double p, F&& f) {
  if (p == 1) return f(NormOne<T>());
  if (p < 2) return f(NormSmallPower<T>());
  if (p == 2) return f(NormTwo<T>());
  if (std::isinf(p)) return f(NormLargest<T>());
  f(NormPower<T>());
}

// Pair k of the rows of an [n, ...] matrix.
struct RowPair {
  int64_t i, j;
};
SCONCE_HOST_DEVICE inline RowPair row_pair(int64_t k, int64_t n) noexcept {
  int64_t i = 0;
  while (k >= n - 1 - i) k -= n - 1 - i++;
  return {i, i + 1 + k};
}

}  // namespace sconce
