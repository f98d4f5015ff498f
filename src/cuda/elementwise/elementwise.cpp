// Elementwise operators that Inductor does not compile itself, mostly on complex numbers. Match aten operators of the
// same names (torch 2.15, CUDA); result dtypes and strides follow at::TensorIterator. A 0-d operand may be on the host.
#include "src/cuda/elementwise/elementwise.h"

#include "src/cuda/elementwise/elementwise_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"
#include "src/tensor/rules/arithmetic.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cuda {
namespace {

Device device_of(const Tensor& a, const Tensor* b) { return a.is_cpu() && b ? b->device() : a.device(); }

ElementNumber number_of(const Scalar& number) {
  if (number.is_bool() || number.is_integral()) {
    const int64_t whole = number.is_bool() ? number.to_double() != 0 : number.to_int();
    return {static_cast<double>(whole), 0, whole, true};
  }
  const std::complex<double> value = number.to_complex();
  return {value.real(), value.imag(), 0, false};
}

ElementWalk walk_of(const char* name, const Tensor& out, const Shape& a, const Shape& b, DType dtype) {
  const size_t item = dtype_bytes(dtype);
  const StridedLoop<3> loop(out.sizes(), {out.strides(), a, b}, {out.itemsize(), item, item});
  SCONCE_CHECK(loop.rank <= kMaxElementRank, kUnsupported, name, ": ", loop.rank,
               " dimensions that cannot be merged are too many on CUDA");
  ElementWalk walk;
  walk.rank = loop.rank;
  walk.numel = loop.numel;
  for (int d = 0; d < loop.rank; ++d) {
    walk.sizes[d] = loop.sizes[static_cast<size_t>(d)];
    for (size_t k = 0; k < 3; ++k) walk.strides[d][k] = loop.strides[static_cast<size_t>(d)][k];
  }
  return walk;
}

// Combines two tensors, or one tensor and `number`, which replaces the null one. computed: their common dtype.
Tensor combined(const char* name, Arithmetic operation, const Tensor* a, const Tensor* b, const Scalar* number,
                DType computed, DType result, const Scalar& factor) {
  const Tensor& any = a ? *a : *b;
  const Device device = a ? device_of(*a, b) : b->device();
  const DeviceScope scope(device);
  Shape sizes(any.sizes());
  if (a && b) sizes = broadcast_shapes(name, a->sizes(), b->sizes());
  std::array<const Tensor*, 2> given{a ? a : b, b};
  Tensor out = Tensor::empty_strided(sizes, elementwise_strides(sizes, {given.data(), a && b ? size_t{2} : size_t{1}}),
                                     result, device);
  if (out.numel() == 0) return out;
  const Tensor left = a ? moved_to(*a, computed, device) : Tensor{},
               right = b ? moved_to(*b, computed, device) : Tensor{};
  const auto strides = [&](const Tensor& t) {
    if (t.defined()) return broadcast_strides(name, t, sizes);
    Shape none = sizes;
    for (int d = 0; d < none.rank(); ++d) none[d] = 0;
    return none;
  };
  ElementOperands operands{out.data(), left.data(), right.data(), {}};
  if (number) operands.number = number_of(*number);
  check_launch(name,
               launch_arithmetic(operation, walk_of(name, out, strides(left), strides(right), computed), operands,
                                 number_of(factor), static_cast<int>(computed), current_stream()),
               computed);
  return out;
}

const Scalar kOne = int64_t{1};

Tensor of_one(const char* name, OfOne operation, const Tensor& self, DType computed, DType result, bool row_major) {
  const DeviceScope scope(self.device());
  const Tensor* const given = &self;
  Tensor out = row_major ? Tensor::empty(self.sizes(), result, self.device())
                         : Tensor::empty_strided(self.sizes(), elementwise_strides(self.sizes(), {&given, 1}), result,
                                                 self.device());
  if (out.numel() == 0) return out;
  const Tensor a = moved_to(self, computed, self.device());
  const Shape strides(a.strides());
  check_launch(name,
               launch_of_one(operation, walk_of(name, out, strides, strides, computed), out.data(), a.data(),
                             static_cast<int>(computed), current_stream()),
               computed);
  return out;
}

DType inexact(DType dtype) { return is_floating(dtype) || is_complex(dtype) ? dtype : DType::kFloat32; }

Tensor function(const char* name, OfOne operation, const Tensor& self) {
  const DType dtype = inexact(self.dtype());
  return of_one(name, operation, self, dtype, dtype, false);
}

Scalar negative(const Scalar& number) {
  if (number.is_complex()) return -number.to_complex();
  if (number.is_floating()) return -number.to_double();
  return -number.to_int();
}

}  // namespace

Tensor add(const Tensor& self, const Tensor& other, Scalar alpha) {
  const DType dtype = ResultType().add(self).add(other).get();
  check_alpha("add", dtype, alpha);
  return combined("add", Arithmetic::kAdd, &self, &other, nullptr, dtype, dtype, alpha);
}
Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha) {
  SCONCE_CHECK(self.dtype() != DType::kBool && other.dtype() != DType::kBool, kInvalidArgument,
               "subtract: Subtraction, the `-` operator, with a bool tensor is not supported.");
  return add(self, other, negative(alpha));
}
Tensor multiply(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  return combined("mul", Arithmetic::kMultiply, &self, &other, nullptr, dtype, dtype, kOne);
}
Tensor multiply_number(const Tensor& self, Scalar other) {
  const DType dtype = ResultType().add(self).add_number(other).get();
  return combined("mul", Arithmetic::kMultiply, &self, nullptr, &other, dtype, dtype, kOne);
}

Tensor add_Tensor(const Tensor& self, const Tensor& other, double alpha) { return add(self, other, alpha); }
Tensor add_Scalar(const Tensor& self, double other, double alpha) { return add_number(self, other, alpha); }
Tensor mul_Tensor(const Tensor& self, const Tensor& other) { return multiply(self, other); }
Tensor mul_Scalar(const Tensor& self, double other) { return multiply_number(self, other); }

Tensor add_number(const Tensor& self, Scalar other, Scalar alpha) {
  const DType dtype = ResultType().add(self).add_number(other).get();
  check_alpha("add", dtype, alpha);
  return combined("add", Arithmetic::kAdd, &self, nullptr, &other, dtype, dtype, alpha);
}
Tensor subtract_number(const Tensor& self, Scalar other, Scalar alpha) {
  SCONCE_CHECK(self.dtype() != DType::kBool && !other.is_bool(), kInvalidArgument,
               "subtract: Subtraction, the `-` operator, with a bool tensor is not supported.");
  return add_number(self, other, negative(alpha));
}

Tensor divide(const Tensor& self, const Tensor& other) {
  const DType dtype = inexact(ResultType().add(self).add(other).get());
  return combined("div", Arithmetic::kDivide, &self, &other, nullptr, dtype, dtype, kOne);
}
Tensor divide_number(const Tensor& self, Scalar other) {
  const DType dtype = inexact(ResultType().add(self).add_number(other).get());
  return combined("div", Arithmetic::kDivide, &self, nullptr, &other, dtype, dtype, kOne);
}

Tensor pow_Tensor_Tensor(const Tensor& self, const Tensor& exponent) {
  const DType dtype = ResultType().add(self).add(exponent).get();
  return combined("pow", Arithmetic::kPower, &self, &exponent, nullptr, dtype, dtype, kOne);
}
Tensor power_of_number(const Tensor& self, Scalar exponent) {
  const DType dtype = ResultType().add(self).add_number(exponent).get();
  return combined("pow", Arithmetic::kPower, &self, nullptr, &exponent, dtype, dtype, kOne);
}
Tensor number_power(Scalar self, const Tensor& exponent) {
  const DType dtype = ResultType().add_number(self).add(exponent).get();
  return combined("pow", Arithmetic::kPower, nullptr, &exponent, &self, dtype, dtype, kOne);
}
Tensor pow_Tensor_Scalar(const Tensor& self, double exponent) { return power_of_number(self, exponent); }
Tensor pow_Scalar(double self, const Tensor& exponent) { return number_power(self, exponent); }

Tensor gcd(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  return combined("gcd", Arithmetic::kGcd, &self, &other, nullptr, dtype, dtype, kOne);
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  const DType dtype = abs.dtype(), result = complex_dtype("polar", abs, angle);
  return combined("polar", Arithmetic::kPolar, &abs, &angle, nullptr, dtype, result, kOne);
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  const DType dtype = real.dtype(), result = complex_dtype("complex", real, imag);
  return combined("complex", Arithmetic::kComplex, &real, &imag, nullptr, dtype, result, kOne);
}

Tensor reciprocal(const Tensor& self) { return function("reciprocal", OfOne::kReciprocal, self); }
Tensor exp(const Tensor& self) { return function("exp", OfOne::kExp, self); }
Tensor log(const Tensor& self) { return function("log", OfOne::kLog, self); }
Tensor sqrt(const Tensor& self) { return function("sqrt", OfOne::kSqrt, self); }
Tensor sin(const Tensor& self) { return function("sin", OfOne::kSin, self); }
Tensor cos(const Tensor& self) { return function("cos", OfOne::kCos, self); }
Tensor tanh(const Tensor& self) { return function("tanh", OfOne::kTanh, self); }
Tensor sigmoid(const Tensor& self) { return function("sigmoid", OfOne::kSigmoid, self); }
Tensor neg(const Tensor& self) {
  SCONCE_CHECK(self.dtype() != DType::kBool, kInvalidArgument,
               "neg: Negation, the `-` operator, on a bool tensor is not supported.");
  return of_one("neg", OfOne::kNegative, self, self.dtype(), self.dtype(), false);
}
Tensor conj(const Tensor& self) {
  if (!is_complex(self.dtype())) return self;
  // PyTorch returns a view with the same strides, and compiled code relies on them.
  Tensor out = Tensor::empty_strided(self.sizes(), self.strides(), self.dtype(), self.device());
  Shape once(self.sizes());
  for (int d = 0; d < once.rank(); ++d)
    if (self.stride(d) == 0 && once[d] > 1) once[d] = 1;
  Tensor to = out.as_strided(once, out.strides(), 0);
  copy(_conj_physical(self.as_strided(once, self.strides(), self.storage_offset())), to, false);
  return out;
}
Tensor conj_physical(const Tensor& self) { return is_complex(self.dtype()) ? _conj_physical(self) : self; }
Tensor _conj_physical(const Tensor& self) {
  if (!is_complex(self.dtype())) {
    Tensor out = empty_like(self, self.dtype());
    copy(self, out, false);
    return out;
  }
  return of_one("conj", OfOne::kConjugate, self, self.dtype(), self.dtype(), false);
}

Tensor abs(const Tensor& self) {
  return of_one("abs", OfOne::kAbs, self, self.dtype(), value_dtype(self.dtype()), false);
}

Tensor angle(const Tensor& self) {
  const bool whole = !is_floating(self.dtype()) && !is_complex(self.dtype());
  const DType dtype = whole ? DType::kFloat32 : self.dtype();
  return of_one("angle", OfOne::kAngle, self, dtype, value_dtype(dtype), is_complex(dtype));
}

Tensor hann_window(int64_t window_length, OptType dtype, OptEnum, OptDevice device, OptEnum) {
  SCONCE_CHECK(window_length >= 0, kInvalidArgument,
               "hann_window: requires non-negative window_length, got window_length=", window_length);
  Tensor out = Tensor::empty(IntSpan(&window_length, 1), dtype.value_or(DType::kFloat32), device_or_current(device));
  if (window_length == 0) return out;
  const DeviceScope scope(out.device());
  if (window_length == 1) {
    cpu::fill__Scalar(out, 1);
    return out;
  }
  check_launch(
      "hann_window",
      launch_hann_window(static_cast<int>(out.dtype()), window_length, window_length, out.data(), current_stream()),
      out.dtype());
  return out;
}

}  // namespace sconce::cuda
