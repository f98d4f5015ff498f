// Real and complex numbers under the same names, for linear algebra in device code.
#pragma once

#include <thrust/complex.h>

#include "src/cuda/device_code/warp_sum.cuh"

namespace sconce::cuda {

template <class T>
struct RealPart {
  using Type = T;
};
template <class R>
struct RealPart<thrust::complex<R>> {
  using Type = R;
};
template <class T>
using Real = typename RealPart<T>::Type;

template <class R>
__device__ R squared(R v) {
  return v * v;
}
template <class R>
__device__ R squared(const thrust::complex<R>& v) {
  return v.real() * v.real() + v.imag() * v.imag();
}

template <class R>
__device__ R conjugated(R v) {
  return v;
}
template <class R>
__device__ thrust::complex<R> conjugated(const thrust::complex<R>& v) {
  return {v.real(), -v.imag()};
}

template <class R>
__device__ R length_of(R v) {
  return fabs(v);
}
template <class R>
__device__ R length_of(const thrust::complex<R>& v) {
  return hypot(v.real(), v.imag());
}

// The sum of the absolute parts, by which LAPACK chooses pivots.
template <class R>
__device__ R rough_size(R v) {
  return fabs(v);
}
template <class R>
__device__ R rough_size(const thrust::complex<R>& v) {
  return fabs(v.real()) + fabs(v.imag());
}

template <class R>
__device__ R largest_part(R v) {
  return fabs(v);
}
template <class R>
__device__ R largest_part(const thrust::complex<R>& v) {
  return fmax(fabs(v.real()), fabs(v.imag()));
}
template <class R>
__device__ bool finite_parts(R v) {
  return isfinite(v);
}
template <class R>
__device__ bool finite_parts(const thrust::complex<R>& v) {
  return isfinite(v.real()) && isfinite(v.imag());
}

// v times 2 to the power e, which may itself be out of range.
template <class R>
__device__ R with_exponent(R v, int e) {
  return scalbn(v, e);
}
template <class R>
__device__ thrust::complex<R> with_exponent(const thrust::complex<R>& v, int e) {
  return {scalbn(v.real(), e), scalbn(v.imag(), e)};
}

template <class R>
__device__ R sum_over_warp(R v) {
  return warp_sum(v);
}
template <class R>
__device__ thrust::complex<R> sum_over_warp(const thrust::complex<R>& v) {
  return {warp_sum(v.real()), warp_sum(v.imag())};
}

// Calls f with a number of that type.
template <class F>
void by_number(int dtype, F&& f) {
  switch (dtype) {
    case 6:
      return f(float{});
    case 7:
      return f(double{});
    case 9:
      return f(thrust::complex<float>{});
    default:
      return f(thrust::complex<double>{});
  }
}

}  // namespace sconce::cuda
