// result = f(a, b) or f(a), element by element, for host code. dtype (c10::ScalarType) is that of the operands and,
// unless stated otherwise, of the result. cudaErrorNotSupported for dtypes that are not listed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int kMaxElementRank = 16;

// Like StridedLoop: dimension 0 is the innermost; strides in bytes of the result, a and b.
struct ElementWalk {
  int rank = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxElementRank];
  int64_t strides[kMaxElementRank][3];
};

// A number from the caller, computed in the elements' full width.
struct ElementNumber {
  double re = 0, im = 0;
  int64_t whole = 0;
  bool is_whole = false;
};

struct ElementOperands {
  void* result;
  const void* a;  // null: the number is used
  const void* b;  // null: the number is used
  ElementNumber number;
};

enum class Arithmetic {
  kAdd,       // a + factor * b; integers wrap
  kDivide,    // a / b; no integers
  kMultiply,  // integers wrap
  kPower,     // no bool
  kGcd,       // integers
  kPolar,     // float16, float32 or float64 into complex numbers: a (cos b + i sin b)
  kComplex,   // as kPolar, into a + i b
};
cudaError_t launch_arithmetic(Arithmetic operation, const ElementWalk& walk, const ElementOperands& operands,
                              const ElementNumber& factor, int dtype, cudaStream_t stream);

enum class OfOne {
  kAbs,    // complex numbers into real ones
  kAngle,  // floats and complex numbers into real ones
  // For floats and complex numbers:
  kNegative,  // and integers
  kConjugate,
  kReciprocal,
  kExp,
  kLog,
  kSqrt,
  kSin,
  kCos,
  kTanh,
  kSigmoid,
};
cudaError_t launch_of_one(OfOne operation, const ElementWalk& walk, void* result, const void* a, int dtype,
                          cudaStream_t stream);

// result = factor target z / (z + 1) grad with z = exp(-target self); packed, floating.
cudaError_t launch_soft_margin_slopes(int dtype, const void* self, const void* target, const void* grad, double factor,
                                      int64_t count, void* result, cudaStream_t stream);
// A Hann window of `period`, rounded to the dtype after each step, as in ATen.
cudaError_t launch_hann_window(int dtype, int64_t count, int64_t period, void* result, cudaStream_t stream);

}  // namespace sconce::cuda
