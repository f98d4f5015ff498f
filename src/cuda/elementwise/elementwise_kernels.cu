#include <thrust/complex.h>

#include <type_traits>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/elementwise/elementwise_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<thrust::complex<T>> : std::true_type {};

// The type in which elements of T are computed: integers in their own type, so that they wrap correctly.
template <class T>
using In = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;
template <class T>
__device__ In<T> in(T v) {
  if constexpr (std::is_integral_v<T>)
    return v;
  else
    return widened(v);
}

template <class C>
__host__ __device__ C number_as(const ElementNumber& n) {
  if constexpr (IsComplex<C>::value)
    return C(n.is_whole ? n.whole : n.re, n.im);
  else if constexpr (std::is_same_v<C, bool>)
    return n.is_whole ? n.whole != 0 : n.re != 0;
  else if constexpr (std::is_integral_v<C>)
    return n.is_whole ? static_cast<C>(n.whole) : static_cast<C>(static_cast<int64_t>(n.re));
  else
    return n.is_whole ? static_cast<C>(n.whole) : static_cast<C>(n.re);
}

// Finds single elements, or packs of at_once elements in a row.
struct Located {
  Located(const ElementWalk& w, int at_once) : walk(w) {
    for (int d = 0; d < w.rank; ++d) sizes[d] = Divider(d == 0 ? w.sizes[0] / at_once : w.sizes[d]);
    if (w.rank > 0)
      for (int k = 0; k < 3; ++k) walk.strides[0][k] *= at_once;
  }
  __device__ void locate(int64_t i, int64_t (&at)[3]) const {
    at[0] = at[1] = at[2] = 0;
    for (int d = 0; d < walk.rank; ++d) {
      const int64_t index = d + 1 == walk.rank ? i : sizes[d].take(i);
      for (int k = 0; k < 3; ++k) at[k] += index * walk.strides[d][k];
    }
  }

  __device__ int64_t step(int k) const { return walk.strides[0][k]; }

  ElementWalk walk;
  Divider sizes[kMaxElementRank];
};
// The same for one row, which is what tensors without gaps are: a multiplication finds an element.
struct LocatedInRow {
  LocatedInRow(const ElementWalk& w, int at_once) {
    for (int k = 0; k < 3; ++k) steps[k] = w.strides[0][k] * at_once;
  }
  __device__ void locate(int64_t i, int64_t (&at)[3]) const {
    for (int k = 0; k < 3; ++k) at[k] = i * steps[k];
  }
  __device__ int64_t step(int k) const { return steps[k]; }

  int64_t steps[3];
};

// Whether rows can be walked at_once elements at a time: the result must be contiguous along the row, and each operand
// (null: none) too, or one element for the whole row.
bool in_packs(const ElementWalk& w, const void* const (&data)[3], int result_itemsize, int itemsize, int at_once) {
  if (w.rank == 0 || w.sizes[0] % at_once != 0 || w.strides[0][0] != result_itemsize) return false;
  for (int k = 0; k < 3; ++k) {
    const int size = k == 0 ? result_itemsize : itemsize;
    if (!data[k]) continue;
    if (w.strides[0][k] == 0) continue;
    if (w.strides[0][k] != size) return false;
    auto all = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data[k]));
    for (int d = 1; d < w.rank; ++d) all |= w.strides[d][k];
    if (all % (size * at_once) != 0) return false;
  }
  return true;
}

// Absolute value; the least integer of a type maps to itself.
template <class C>
__device__ C magnitude(C x) {
  if constexpr (std::is_signed_v<C>)
    return x < 0 ? static_cast<C>(0 - static_cast<uint64_t>(x)) : x;
  else
    return x;
}

struct Add {
  template <class C>
  __device__ C operator()(C a, C b, C factor) const {
    if constexpr (std::is_same_v<C, bool>)
      return a || (factor && b);
    else if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(factor) * static_cast<uint64_t>(b));
    else
      return a + factor * b;
  }
};
// Divides by the larger part first (Smith). Division by zero gives infinite parts, and NaN for zero parts.
template <class R>
__device__ thrust::complex<R> quotient(const thrust::complex<R>& a, const thrust::complex<R>& b) {
  const R real = b.real(), imaginary = b.imag();
  if (fabs(real) >= fabs(imaginary)) {
    if (real == 0) return {a.real() / fabs(real), a.imag() / fabs(imaginary)};
    const R ratio = imaginary / real, scale = R(1) / (real + imaginary * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const R ratio = real / imaginary, scale = R(1) / (imaginary + real * ratio);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}
struct Divide {
  template <class C>
  __device__ C operator()(C a, C b, C) const {
    if constexpr (IsComplex<C>::value)
      return quotient(a, b);
    else
      return a / b;
  }
};
struct Multiply {
  template <class C>
  __device__ C operator()(C a, C b, C) const {
    if constexpr (std::is_same_v<C, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
struct Power {
  template <class C>
  __device__ C operator()(C a, C b, C) const {
    if constexpr (std::is_integral_v<C>) {
      if constexpr (std::is_signed_v<C>)
        if (b < 0) return a == 1 ? C(1) : a == C(-1) ? (b % 2 ? C(-1) : C(1)) : C(0);
      uint64_t result = 1, times = static_cast<uint64_t>(a);
      for (auto rest = static_cast<uint64_t>(b); rest; rest >>= 1, times *= times)
        if (rest & 1) result *= times;
      return static_cast<C>(result);
    } else if constexpr (IsComplex<C>::value) {
      return thrust::pow(a, b);  // 0 to the power 0 is NaN, as in ATen
    } else {
      return pow(a, b);
    }
  }
};
// A power with a number as exponent, with ATen's special cases.
struct PowerOfNumber {
  template <class C>
  __device__ C operator()(C a, C b, C factor) const {
    if constexpr (std::is_integral_v<C>) {
      return Power()(a, b, factor);
    } else if constexpr (IsComplex<C>::value) {
      if (b == C(0)) return C(1);
      if (b == C(2)) return a * a;
      if (b == C(0.5)) return thrust::sqrt(a);
      if (b == C(-1)) return C(1) / a;
      return Power()(a, b, factor);
    } else {
      if (b == C(2)) return a * a;
      if (b == C(3)) return a * a * a;
      if (b == C(0.5)) return sqrt(a);
      if (b == C(-0.5)) return rsqrt(a);
      if (b == C(-1)) return C(1) / a;
      if (b == C(-2)) return C(1) / (a * a);
      return pow(a, b);
    }
  }
};
struct Gcd {
  template <class C>
  __device__ C operator()(C a, C b, C) const {
    a = magnitude(a);
    b = magnitude(b);
    while (a != 0) {
      const C rest = static_cast<C>(b % a);
      b = a;
      a = rest;
    }
    return b;
  }
};

constexpr int kPackBytes = 16;

template <class T, int kAtOnce>
__device__ Pack<T, kAtOnce> pack_at(const void* data, int64_t at, int64_t step) {
  const T* from = reinterpret_cast<const T*>(static_cast<const char*>(data) + at);
  if (step) return *reinterpret_cast<const Pack<T, kAtOnce>*>(from);
  Pack<T, kAtOnce> same;
  for (int k = 0; k < kAtOnce; ++k) same.at[k] = *from;
  return same;
}

// The operations that packages call most also get kernels that use packs.
template <class T>
constexpr bool kMemoryBound = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, float>;
template <class F>
constexpr bool kSum = std::is_same_v<F, Add> || std::is_same_v<F, Multiply>;
template <class F>
constexpr bool kAnyPower = std::is_same_v<F, Power> || std::is_same_v<F, PowerOfNumber>;
template <class T, class F>
constexpr bool kPacked = ((kSum<F> || kAnyPower<F>)&&kMemoryBound<T>) ||
                         (kSum<F> && std::is_same_v<T, thrust::complex<float>>);

template <class T, class Places, class F>
void arithmetic_in_packs(F f, const ElementWalk& walk, const ElementOperands& operands, const ElementNumber& factor,
                         cudaStream_t stream) {
  using C = In<T>;
  constexpr int kAtOnce = kPackBytes / static_cast<int>(sizeof(T));
  const Places w(walk, kAtOnce);
  const ElementOperands o = operands;
  const C number = number_as<C>(operands.number), times = number_as<C>(factor);
  grid_loop(walk.numel / kAtOnce, stream, [=] __device__(int64_t i) {
    int64_t at[3];
    w.locate(i, at);
    Pack<T, kAtOnce> a{}, b{}, result;
    if (o.a) a = pack_at<T, kAtOnce>(o.a, at[1], w.step(1));
    if (o.b) b = pack_at<T, kAtOnce>(o.b, at[2], w.step(2));
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      result.at[k] = narrowed<T>(f(o.a ? in(a.at[k]) : number, o.b ? in(b.at[k]) : number, times));
    *reinterpret_cast<Pack<T, kAtOnce>*>(static_cast<char*>(o.result) + at[0]) = result;
  });
}

template <class T, class F>
cudaError_t arithmetic(F f, const ElementWalk& walk, const ElementOperands& operands, const ElementNumber& factor,
                       cudaStream_t stream) {
  if constexpr (kPacked<T, F>) {
    if (in_packs(walk, {operands.result, operands.a, operands.b}, sizeof(T), sizeof(T), kPackBytes / sizeof(T))) {
      // Powers are bound by arithmetic, to which finding elements adds.
      if constexpr (kAnyPower<F>) {
        if (walk.rank == 1) {
          arithmetic_in_packs<T, LocatedInRow>(f, walk, operands, factor, stream);
          return cudaGetLastError();
        }
      }
      arithmetic_in_packs<T, Located>(f, walk, operands, factor, stream);
      return cudaGetLastError();
    }
  }
  const Located w(walk, 1);
  const ElementOperands o = operands;
  const ElementNumber by = factor;
  grid_loop(walk.numel, stream, [=] __device__(int64_t i) {
    using C = In<T>;
    int64_t at[3];
    w.locate(i, at);
    const C a = o.a ? in(*reinterpret_cast<const T*>(static_cast<const char*>(o.a) + at[1])) : number_as<C>(o.number);
    const C b = o.b ? in(*reinterpret_cast<const T*>(static_cast<const char*>(o.b) + at[2])) : number_as<C>(o.number);
    *reinterpret_cast<T*>(static_cast<char*>(o.result) + at[0]) = narrowed<T>(f(a, b, number_as<C>(by)));
  });
  return cudaGetLastError();
}

// The complex type with parts T.
template <class T>
struct ComplexOf {
  using Type = thrust::complex<T>;
};
template <>
struct ComplexOf<__half> {
  using Type = ComplexHalf;
};
// a (cos b + i sin b), or a + i b.
template <class T, bool kByParts>
__device__ typename ComplexOf<T>::Type polar_number(T a, T b) {
  const Compute<T> length = widened(a), argument = widened(b);
  using Result = typename ComplexOf<T>::Type;
  Compute<T> sine = argument, cosine = length;
  if (!kByParts) {
    sincos(argument, &sine, &cosine);
    sine *= length;
    cosine *= length;
  }
  return narrowed<Result>(Compute<Result>(cosine, sine));
}
template <class T, bool kByParts>
cudaError_t polar_as(const ElementWalk& walk, const ElementOperands& operands, cudaStream_t stream) {
  constexpr int kAtOnce = kPackBytes / static_cast<int>(sizeof(T));
  using Result = typename ComplexOf<T>::Type;
  const ElementOperands o = operands;
  if (walk.rank == 1 && in_packs(walk, {o.result, o.a, o.b}, sizeof(Result), sizeof(T), kAtOnce)) {
    const LocatedInRow w(walk, kAtOnce);
    grid_loop(walk.numel / kAtOnce, stream, [=] __device__(int64_t i) {
      int64_t at[3];
      w.locate(i, at);
      const auto a = pack_at<T, kAtOnce>(o.a, at[1], w.step(1));
      const auto b = pack_at<T, kAtOnce>(o.b, at[2], w.step(2));
      Pack<Result, kAtOnce> made;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) made.at[k] = polar_number<T, kByParts>(a.at[k], b.at[k]);
      *reinterpret_cast<Pack<Result, kAtOnce>*>(static_cast<char*>(o.result) + at[0]) = made;
    });
    return cudaGetLastError();
  }
  const Located w(walk, 1);
  grid_loop(walk.numel, stream, [=] __device__(int64_t i) {
    int64_t at[3];
    w.locate(i, at);
    *reinterpret_cast<Result*>(static_cast<char*>(o.result) + at[0]) =
        polar_number<T, kByParts>(*reinterpret_cast<const T*>(static_cast<const char*>(o.a) + at[1]),
                                  *reinterpret_cast<const T*>(static_cast<const char*>(o.b) + at[2]));
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t polar(bool by_parts, const ElementWalk& walk, const ElementOperands& operands, cudaStream_t stream) {
  return by_parts ? polar_as<T, true>(walk, operands, stream) : polar_as<T, false>(walk, operands, stream);
}

struct Absolute;
template <class T, class F>
void of_one_in_packs(F f, const ElementWalk& walk, void* result, const void* a, cudaStream_t stream) {
  constexpr int kAtOnce = kPackBytes / static_cast<int>(sizeof(T));
  const Located w(walk, kAtOnce);
  grid_loop(walk.numel / kAtOnce, stream, [=] __device__(int64_t i) {
    int64_t at[3];
    w.locate(i, at);
    const Pack<T, kAtOnce> given = pack_at<T, kAtOnce>(a, at[1], w.step(1));
    Pack<T, kAtOnce> made;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) made.at[k] = narrowed<T>(f(in(given.at[k])));
    *reinterpret_cast<Pack<T, kAtOnce>*>(static_cast<char*>(result) + at[0]) = made;
  });
}
template <class T, class R, class F>
cudaError_t of_one(F f, const ElementWalk& walk, void* result, const void* a, cudaStream_t stream) {
  if constexpr (std::is_same_v<F, Absolute> && kMemoryBound<T>) {
    if (in_packs(walk, {result, a, nullptr}, sizeof(T), sizeof(T), kPackBytes / sizeof(T))) {
      of_one_in_packs<T>(f, walk, result, a, stream);
      return cudaGetLastError();
    }
  }
  const Located w(walk, 1);
  grid_loop(walk.numel, stream, [=] __device__(int64_t i) {
    int64_t at[3];
    w.locate(i, at);
    *reinterpret_cast<R*>(static_cast<char*>(result) + at[0]) =
        narrowed<R>(f(in(*reinterpret_cast<const T*>(static_cast<const char*>(a) + at[1]))));
  });
  return cudaGetLastError();
}

struct Absolute {
  template <class C>
  __device__ auto operator()(C x) const {
    if constexpr (IsComplex<C>::value)
      return hypot(x.real(), x.imag());
    else if constexpr (std::is_same_v<C, bool>)
      return x;
    else if constexpr (std::is_integral_v<C>)
      return magnitude(x);
    else
      return fabs(x);
  }
};
struct Angle {
  template <class C>
  __device__ auto operator()(C x) const {
    if constexpr (IsComplex<C>::value)
      return atan2(x.imag(), x.real());
    else
      return x != x ? x : x < 0 ? static_cast<C>(3.14159265358979323846) : C(0);
  }
};

struct Negative {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(0 - static_cast<uint64_t>(x));
    else
      return -x;
  }
};
struct Conjugate {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (IsComplex<C>::value)
      return thrust::conj(x);
    else
      return x;
  }
};
struct Reciprocal {
  template <class C>
  __device__ C operator()(C x) const {
    return C(1) / x;
  }
};
#define SCONCE_FUNCTION(NAME, FUNCTION)  \
  struct NAME {                          \
    template <class C>                   \
    __device__ C operator()(C x) const { \
      if constexpr (IsComplex<C>::value) \
        return thrust::FUNCTION(x);      \
      else                               \
        return FUNCTION(x);              \
    }                                    \
  };
SCONCE_FUNCTION(Exp, exp)
SCONCE_FUNCTION(Log, log)
SCONCE_FUNCTION(Sqrt, sqrt)
SCONCE_FUNCTION(Sin, sin)
SCONCE_FUNCTION(Cos, cos)
SCONCE_FUNCTION(Tanh, tanh)
#undef SCONCE_FUNCTION
struct Sigmoid {
  template <class C>
  __device__ C operator()(C x) const {
    return C(1) / (C(1) + Exp()(-x));
  }
};

#define SCONCE_INEXACT_CASES(FUNCTION, ...)    \
  SCONCE_FLOATING_CASES(FUNCTION, __VA_ARGS__) \
  SCONCE_COMPLEX_CASES(FUNCTION, __VA_ARGS__)  \
  SCONCE_DTYPE_CASE(8, ComplexHalf, FUNCTION, __VA_ARGS__)
#define SCONCE_ALL_CASES(FUNCTION, ...)       \
  SCONCE_INEXACT_CASES(FUNCTION, __VA_ARGS__) \
  SCONCE_INTEGER_CASES(FUNCTION, __VA_ARGS__)

template <class F>
cudaError_t by_dtype(F f, const ElementWalk& w, const ElementOperands& o, const ElementNumber& by, int dtype,
                     cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_ALL_CASES(arithmetic, f, w, o, by, stream));
}
cudaError_t gcd(const ElementWalk& w, const ElementOperands& o, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_INTEGER_CASES(arithmetic, Gcd(), w, o, ElementNumber(), stream));
}
cudaError_t polar(bool by_parts, const ElementWalk& w, const ElementOperands& o, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_DTYPE_CASE(5, __half, polar, by_parts, w, o, stream)
                                    SCONCE_SINGLE_DOUBLE_CASES(polar, by_parts, w, o, stream));
}

template <class T>
cudaError_t soft_margin(const void* self, const void* target, const void* grad, double factor, int64_t count,
                        void* result, cudaStream_t stream) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(self);
  const T* y = static_cast<const T*>(target);
  const T* g = static_cast<const T*>(grad);
  T* to = static_cast<T*>(result);
  const C norm = static_cast<C>(factor);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    const C b = widened(y[i]), z = exp(-b * widened(x[i]));
    to[i] = narrowed<T>(norm * b * z / (z + 1) * widened(g[i]));
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t hann(int64_t count, int64_t period, void* result, cudaStream_t stream) {
  using C = Compute<T>;
  T* to = static_cast<T*>(result);
  const C step = static_cast<C>(6.283185307179586 / static_cast<double>(period));
  grid_loop(count, stream, [=] __device__(int64_t i) {
    const auto rounded = [](C v) { return widened(narrowed<T>(v)); };
    const C wave = rounded(cos(rounded(rounded(static_cast<C>(i)) * step)));
    to[i] = narrowed<T>(rounded(wave * C(-0.5)) + C(0.5));
  });
  return cudaGetLastError();
}

// The result's type: for a complex number the type of its parts.
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<thrust::complex<T>> {
  using Type = T;
};
template <>
struct RealOf<ComplexHalf> {
  using Type = __half;
};
template <class T, class F>
cudaError_t of_same(F f, const ElementWalk& walk, void* result, const void* a, cudaStream_t stream) {
  return of_one<T, T>(f, walk, result, a, stream);
}
template <class F>
cudaError_t function_of(F f, const ElementWalk& walk, void* result, const void* a, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_INEXACT_CASES(of_same, f, walk, result, a, stream));
}

template <class T, class F>
cudaError_t of_real(F f, const ElementWalk& walk, void* result, const void* a, cudaStream_t stream) {
  return of_one<T, typename RealOf<T>::Type>(f, walk, result, a, stream);
}

// A number that is raised or that is an exponent has the tensor's dtype, as in ATen.
ElementOperands in_dtype(const ElementOperands& given, int dtype) {
  ElementOperands operands = given;
  const ElementNumber& n = given.number;
  const float wide = n.is_whole ? static_cast<float>(n.whole) : static_cast<float>(n.re);
  if (dtype == 5) operands.number = {widened(narrowed<__half>(wide))};
  if (dtype == 15) operands.number = {widened(narrowed<__nv_bfloat16>(wide))};
  return operands;
}

}  // namespace

cudaError_t launch_arithmetic(Arithmetic operation, const ElementWalk& walk, const ElementOperands& operands,
                              const ElementNumber& factor, int dtype, cudaStream_t stream) {
  constexpr int kBool = 11;
  switch (operation) {
    case Arithmetic::kAdd:
      return dtype == kBool ? arithmetic<bool>(Add(), walk, operands, factor, stream)
                            : by_dtype(Add(), walk, operands, factor, dtype, stream);
    case Arithmetic::kMultiply:
      return dtype == kBool ? arithmetic<bool>(Multiply(), walk, operands, factor, stream)
                            : by_dtype(Multiply(), walk, operands, factor, dtype, stream);
    case Arithmetic::kPower:
      return operands.b ? by_dtype(Power(), walk, in_dtype(operands, dtype), factor, dtype, stream)
                        : by_dtype(PowerOfNumber(), walk, in_dtype(operands, dtype), factor, dtype, stream);
    case Arithmetic::kGcd:
      return gcd(walk, operands, dtype, stream);
    case Arithmetic::kDivide:
      SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_INEXACT_CASES(arithmetic, Divide(), walk, operands, factor, stream));
    default:
      return polar(operation == Arithmetic::kComplex, walk, operands, dtype, stream);
  }
}

cudaError_t launch_of_one(OfOne operation, const ElementWalk& walk, void* result, const void* a, int dtype,
                          cudaStream_t stream) {
  switch (operation) {
    case OfOne::kAngle:
      SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_INEXACT_CASES(of_real, Angle(), walk, result, a, stream));
    case OfOne::kNegative:
      SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_ALL_CASES(of_same, Negative(), walk, result, a, stream));
    case OfOne::kConjugate:
      return function_of(Conjugate(), walk, result, a, dtype, stream);
    case OfOne::kReciprocal:
      return function_of(Reciprocal(), walk, result, a, dtype, stream);
    case OfOne::kExp:
      return function_of(Exp(), walk, result, a, dtype, stream);
    case OfOne::kLog:
      return function_of(Log(), walk, result, a, dtype, stream);
    case OfOne::kSqrt:
      return function_of(Sqrt(), walk, result, a, dtype, stream);
    case OfOne::kSin:
      return function_of(Sin(), walk, result, a, dtype, stream);
    case OfOne::kCos:
      return function_of(Cos(), walk, result, a, dtype, stream);
    case OfOne::kTanh:
      return function_of(Tanh(), walk, result, a, dtype, stream);
    case OfOne::kSigmoid:
      return function_of(Sigmoid(), walk, result, a, dtype, stream);
    default:
      SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_ALL_CASES(of_real, Absolute(), walk, result, a, stream)
                                        SCONCE_DTYPE_CASE(11, bool, of_real, Absolute(), walk, result, a, stream));
  }
}

cudaError_t launch_soft_margin_slopes(int dtype, const void* self, const void* target, const void* grad, double factor,
                                      int64_t count, void* result, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(soft_margin, self, target, grad, factor, count, result, stream));
}

cudaError_t launch_hann_window(int dtype, int64_t count, int64_t period, void* result, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(hann, count, period, result, stream));
}

}  // namespace sconce::cuda
