#include "src/cuda/elementwise_kernels.h"

#include <cmath>

#include "src/cuda/device_types.cuh"
#include "src/cuda/grid_loop.cuh"

namespace sconce::cuda {
namespace {

__device__ float power(float a, float b) { return powf(a, b); }
__device__ double power(double a, double b) { return pow(a, b); }
template <class T>
__device__ thrust::complex<T> power(const thrust::complex<T>& a, const thrust::complex<T>& b) {
  return thrust::pow(a, b);
}
// As at::native::powi: 0 for what is not whole.
__device__ int64_t power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1, base = static_cast<uint64_t>(a);
  for (auto left = static_cast<uint64_t>(b); left > 0; left /= 2) {
    if (left % 2) result *= base;
    base *= base;
  }
  return static_cast<int64_t>(result);
}

template <class C>
__device__ C apply(Binary op, C a, C b, C scale) {
  return op == Binary::kAdd ? a + scale * b : op == Binary::kMultiply ? a * b : power(a, b);
}

template <class T>
cudaError_t binary(const BinaryCall& c, cudaStream_t stream) {
  using C = Compute<T>;
  const T* a = static_cast<const T*>(c.a);
  const T* b = static_cast<const T*>(c.b);
  T* out = static_cast<T*>(c.out);
  const C number = static_cast<C>(c.number), scale = static_cast<C>(c.scale);
  const Binary op = c.op;
  grid_loop(c.count, stream, [=] __device__(int64_t i) {
    out[i] = narrowed<T>(apply<C>(op, a ? widened(a[i]) : number, b ? widened(b[i]) : number, scale));
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t abs_real(const void* in, void* out, int64_t count, cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    const Compute<T> v = widened(from[i]);
    to[i] = narrowed<T>(v < Compute<T>(0) ? -v : v == Compute<T>(0) ? Compute<T>(0) : v);
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t abs_complex(const void* in, void* out, int64_t count, cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  auto* to = static_cast<typename T::value_type*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) { to[i] = hypot(from[i].real(), from[i].imag()); });
  return cudaGetLastError();
}

template <class T>
cudaError_t angle_real(const void* in, void* out, int64_t count, cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    const Compute<T> v = widened(from[i]), pi = static_cast<Compute<T>>(3.14159265358979323846);
    to[i] = narrowed<T>(is_nan(v) ? v : v < Compute<T>(0) ? pi : Compute<T>(0));
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t angle_complex(const void* in, void* out, int64_t count, cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  auto* to = static_cast<typename T::value_type*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) { to[i] = atan2(from[i].imag(), from[i].real()); });
  return cudaGetLastError();
}

template <class T>
cudaError_t polar(const void* lengths, const void* angles, void* out, int64_t count, cudaStream_t stream) {
  const T* length = static_cast<const T*>(lengths);
  const T* angle = static_cast<const T*>(angles);
  auto* to = static_cast<thrust::complex<T>*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    to[i] = thrust::complex<T>(length[i] * cos(angle[i]), length[i] * sin(angle[i]));
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t distances(const void* first, const void* second, void* target, int64_t batch, int64_t p, int64_t r,
                      int64_t m, double norm, cudaStream_t stream) {
  const T* x1 = static_cast<const T*>(first);
  const T* x2 = static_cast<const T*>(second);
  T* out = static_cast<T*>(target);
  const T by = static_cast<T>(norm);
  const int kind = norm == 0 ? 0 : norm == 1 ? 1 : norm == 2 ? 2 : isinf(norm) ? 3 : 4;
  grid_loop(batch * p * r, stream, [=] __device__(int64_t i) {
    const T* a = x1 + i / r * m;
    const T* b = x2 + (i / (p * r) * r + i % r) * m;
    T sum = 0;
    for (int64_t k = 0; k < m; ++k) {
      const T d = a[k] > b[k] ? a[k] - b[k] : b[k] - a[k];
      switch (kind) {
        case 0:
          sum += is_nan(d) ? d : static_cast<T>(d > 0);
          break;
        case 1:
          sum += d;
          break;
        case 2:
          sum += d * d;
          break;
        case 3:
          sum = sum < d || is_nan(d) ? d : sum;
          break;
        default:
          sum += pow(d, by);
      }
    }
    out[i] = kind == 2 ? sqrt(sum) : kind == 4 ? pow(sum, 1 / by) : sum;
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_binary(const BinaryCall& call, cudaStream_t stream) {
  switch (call.dtype) {
    SCONCE_FLOATING_CASES(binary, call, stream)
    SCONCE_INTEGER_CASES(binary, call, stream)
    SCONCE_COMPLEX_CASES(binary, call, stream)
    SCONCE_DTYPE_CASE(11, bool, binary, call, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_abs(int dtype, const void* in, void* out, int64_t count, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(abs_real, in, out, count, stream)
    SCONCE_INTEGER_CASES(abs_real, in, out, count, stream)
    SCONCE_COMPLEX_CASES(abs_complex, in, out, count, stream)
    SCONCE_DTYPE_CASE(11, bool, abs_real, in, out, count, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_angle(int dtype, const void* in, void* out, int64_t count, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(angle_real, in, out, count, stream)
    SCONCE_COMPLEX_CASES(angle_complex, in, out, count, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_polar(int dtype, const void* lengths, const void* angles, void* out, int64_t count,
                         cudaStream_t stream) {
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, polar, lengths, angles, out, count, stream)
    SCONCE_DTYPE_CASE(7, double, polar, lengths, angles, out, count, stream)
    default:
      return cudaErrorNotSupported;
  }
}
cudaError_t launch_distances(int dtype, const void* x1, const void* x2, void* out, int64_t batch, int64_t p, int64_t r,
                             int64_t m, double norm, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_DTYPE_CASE(6, float, distances, x1, x2, out, batch, p, r, m, norm, stream)
    SCONCE_DTYPE_CASE(7, double, distances, x1, x2, out, batch, p, r, m, norm, stream)
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace sconce::cuda
