// Reads and writes elements of any dtype (c10::ScalarType) in device code. Converts as at::Tensor::copy_ does.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace sconce::cuda {

// A number between load and store, held exactly.
struct Number {
  enum Kind { kInteger, kUnsigned, kReal } kind;
  int64_t i;
  uint64_t u;
  double re, im;
};

__device__ inline Number integer(int64_t v) { return {Number::kInteger, v, 0, 0, 0}; }
__device__ inline Number real(double v, double im = 0) { return {Number::kReal, 0, 0, v, im}; }

template <class T>
__device__ T read(const char* p) {
  return *reinterpret_cast<const T*>(p);
}

__device__ inline float from_fp8(uint8_t bits, __nv_fp8_interpretation_t kind) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, kind)));
}

__device__ inline Number load(const char* p, int dtype) {
  switch (dtype) {
    case 0:
      return integer(read<uint8_t>(p));
    case 1:
      return integer(read<int8_t>(p));
    case 2:
      return integer(read<int16_t>(p));
    case 3:
      return integer(read<int32_t>(p));
    case 4:
      return integer(read<int64_t>(p));
    case 5:
      return real(__half2float(read<__half>(p)));
    case 6:
      return real(read<float>(p));
    case 7:
      return real(read<double>(p));
    case 8:
      return real(__half2float(read<__half>(p)), __half2float(read<__half>(p + 2)));
    case 9:
      return real(read<float>(p), read<float>(p + 4));
    case 10:
      return real(read<double>(p), read<double>(p + 8));
    case 11:
      return integer(read<uint8_t>(p) != 0);
    case 15:
      return real(__bfloat162float(read<__nv_bfloat16>(p)));
    case 23:
      return real(from_fp8(read<uint8_t>(p), __NV_E5M2));
    case 24:
      return real(from_fp8(read<uint8_t>(p), __NV_E4M3));
    case 27:
      return integer(read<uint16_t>(p));
    case 28:
      return integer(read<uint32_t>(p));
    case 29:
      return {Number::kUnsigned, 0, read<uint64_t>(p), 0, 0};
    default:
      return integer(0);
  }
}

__device__ inline double as_double(const Number& n) {
  return n.kind == Number::kReal      ? n.re
         : n.kind == Number::kInteger ? static_cast<double>(n.i)
                                      : static_cast<double>(n.u);
}
// Integers and reals reach half and float through float, as in PyTorch.
__device__ inline float as_float(const Number& n) {
  return n.kind == Number::kReal      ? static_cast<float>(n.re)
         : n.kind == Number::kInteger ? static_cast<float>(n.i)
                                      : static_cast<float>(n.u);
}
__device__ inline int64_t as_integer(const Number& n) {
  if (n.kind == Number::kInteger) return n.i;
  if (n.kind == Number::kUnsigned) return static_cast<int64_t>(n.u);
  return static_cast<int64_t>(n.re);
}

template <class T>
__device__ void write(char* p, T v) {
  *reinterpret_cast<T*>(p) = v;
}

__device__ inline void store(char* p, int dtype, const Number& n) {
  switch (dtype) {
    case 0:
      write<uint8_t>(p, static_cast<uint8_t>(as_integer(n)));
      break;
    case 1:
      write<int8_t>(p, static_cast<int8_t>(as_integer(n)));
      break;
    case 2:
      write<int16_t>(p, static_cast<int16_t>(as_integer(n)));
      break;
    case 3:
      write<int32_t>(p, static_cast<int32_t>(as_integer(n)));
      break;
    case 4:
      write<int64_t>(p, as_integer(n));
      break;
    case 5:
      write<__half>(p, __float2half_rn(as_float(n)));
      break;
    case 6:
      write<float>(p, as_float(n));
      break;
    case 7:
      write<double>(p, as_double(n));
      break;
    case 8:
      write<__half>(p, __float2half_rn(as_float(n)));
      write<__half>(p + 2, __float2half_rn(static_cast<float>(n.im)));
      break;
    case 9:
      write<float>(p, as_float(n));
      write<float>(p + 4, static_cast<float>(n.im));
      break;
    case 10:
      write<double>(p, as_double(n));
      write<double>(p + 8, n.im);
      break;
    case 11:
      write<uint8_t>(p, n.kind == Number::kReal ? n.re != 0 || n.im != 0 : n.i != 0 || n.u != 0);
      break;
    case 15:
      write<__nv_bfloat16>(p, __float2bfloat16_rn(as_float(n)));
      break;
    case 23:
      write<uint8_t>(p, __nv_cvt_float_to_fp8(as_float(n), __NV_NOSAT, __NV_E5M2));
      break;
    case 24:
      write<uint8_t>(p, __nv_cvt_float_to_fp8(as_float(n), __NV_SATFINITE, __NV_E4M3));
      break;
    case 27:
      write<uint16_t>(p, static_cast<uint16_t>(as_integer(n)));
      break;
    case 28:
      write<uint32_t>(p, static_cast<uint32_t>(as_integer(n)));
      break;
    case 29:
      write<uint64_t>(p, n.kind == Number::kUnsigned ? n.u : static_cast<uint64_t>(as_integer(n)));
      break;
    default:
      break;
  }
}

}  // namespace sconce::cuda
