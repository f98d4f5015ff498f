// Element types for device code that is written once for all dtypes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/complex.h>

#include <cstdint>

namespace sconce::cuda {

// A complex number of two halves.
struct ComplexHalf {
  __half re, im;
};

// The type in which elements of T are computed.
template <class T>
struct ComputeOf {
  using Type = int64_t;
};
template <>
struct ComputeOf<__half> {
  using Type = float;
};
template <>
struct ComputeOf<__nv_bfloat16> {
  using Type = float;
};
template <>
struct ComputeOf<float> {
  using Type = float;
};
template <>
struct ComputeOf<double> {
  using Type = double;
};
template <>
struct ComputeOf<uint64_t> {
  using Type = uint64_t;
};
template <class T>
struct ComputeOf<thrust::complex<T>> {
  using Type = thrust::complex<T>;
};
template <>
struct ComputeOf<ComplexHalf> {
  using Type = thrust::complex<float>;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

template <class T>
__host__ __device__ inline Compute<T> widened(T v) {
  return static_cast<Compute<T>>(v);
}
__host__ __device__ inline float widened(__half v) { return __half2float(v); }
__host__ __device__ inline float widened(__nv_bfloat16 v) { return __bfloat162float(v); }
__host__ __device__ inline thrust::complex<float> widened(ComplexHalf v) {
  return thrust::complex<float>(__half2float(v.re), __half2float(v.im));
}

template <class T, class C>
__host__ __device__ inline T narrowed(C v) {
  return static_cast<T>(v);
}
template <>
__host__ __device__ inline __half narrowed<__half, float>(float v) {
  return __float2half_rn(v);
}
template <>
__host__ __device__ inline __nv_bfloat16 narrowed<__nv_bfloat16, float>(float v) {
  return __float2bfloat16_rn(v);
}
template <>
__host__ __device__ inline ComplexHalf narrowed<ComplexHalf, thrust::complex<float>>(thrust::complex<float> v) {
  return {__float2half_rn(v.real()), __float2half_rn(v.imag())};
}

// Several elements that a thread loads and stores at once.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

template <class C>
__host__ __device__ inline bool is_nan(C v) {
  return v != v;
}

}  // namespace sconce::cuda

// In a switch over c10::ScalarType: returns FUNCTION<T>(...) for these dtypes; other dtypes continue after it.
#define SCONCE_DTYPE_CASE(number, T, FUNCTION, ...) \
  case number:                                      \
    return FUNCTION<T>(__VA_ARGS__);
#define SCONCE_FLOATING_CASES(FUNCTION, ...)          \
  SCONCE_DTYPE_CASE(5, __half, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(6, float, FUNCTION, __VA_ARGS__)  \
  SCONCE_DTYPE_CASE(7, double, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(15, __nv_bfloat16, FUNCTION, __VA_ARGS__)
#define SCONCE_INTEGER_CASES(FUNCTION, ...)            \
  SCONCE_DTYPE_CASE(0, uint8_t, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(1, int8_t, FUNCTION, __VA_ARGS__)  \
  SCONCE_DTYPE_CASE(2, int16_t, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(3, int32_t, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(4, int64_t, FUNCTION, __VA_ARGS__)
#define SCONCE_COMPLEX_CASES(FUNCTION, ...)                             \
  SCONCE_DTYPE_CASE(9, ::thrust::complex<float>, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(10, ::thrust::complex<double>, FUNCTION, __VA_ARGS__)
// The floating types that are computed in float.
#define SCONCE_FLOAT_CASES(FUNCTION, ...)             \
  SCONCE_DTYPE_CASE(5, __half, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(6, float, FUNCTION, __VA_ARGS__)  \
  SCONCE_DTYPE_CASE(15, __nv_bfloat16, FUNCTION, __VA_ARGS__)
#define SCONCE_SINGLE_DOUBLE_CASES(FUNCTION, ...)    \
  SCONCE_DTYPE_CASE(6, float, FUNCTION, __VA_ARGS__) \
  SCONCE_DTYPE_CASE(7, double, FUNCTION, __VA_ARGS__)
#define SCONCE_REAL_CASES(FUNCTION, ...)       \
  SCONCE_FLOATING_CASES(FUNCTION, __VA_ARGS__) \
  SCONCE_INTEGER_CASES(FUNCTION, __VA_ARGS__)
// bool as uint8_t.
#define SCONCE_ORDERED_CASES(FUNCTION, ...) \
  SCONCE_REAL_CASES(FUNCTION, __VA_ARGS__)  \
  SCONCE_DTYPE_CASE(11, uint8_t, FUNCTION, __VA_ARGS__)
// The whole switch: returns `otherwise` for dtypes without a case.
#define SCONCE_RETURN_BY_DTYPE_OR(otherwise, dtype, ...) \
  switch (dtype) {                                       \
    __VA_ARGS__                                          \
    default:                                             \
      return otherwise;                                  \
  }
#define SCONCE_RETURN_BY_DTYPE(dtype, ...) SCONCE_RETURN_BY_DTYPE_OR(cudaErrorNotSupported, dtype, __VA_ARGS__)
