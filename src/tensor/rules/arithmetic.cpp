#include "src/tensor/rules/arithmetic.h"

#include "sconce/check.h"

namespace sconce {

void check_alpha(const char* name, DType dtype, const Scalar& alpha) {
  SCONCE_CHECK(!is_integral(dtype, true) || alpha.is_integral() || alpha.is_bool(), kInvalidArgument, name,
               ": For integral input tensors, argument alpha must not be a floating point number.");
  SCONCE_CHECK(!alpha.is_bool() || dtype == DType::kBool, kInvalidArgument, name,
               ": Boolean alpha only supported for Boolean results.");
  SCONCE_CHECK(!alpha.is_complex() || is_complex(dtype), kInvalidArgument, name,
               ": For non-complex input tensors, argument alpha must not be a complex number.");
}

DType complex_dtype(const char* name, const Tensor& first, const Tensor& second) {
  const DType dtype = first.dtype();
  const auto real = [](DType d) { return d == DType::kFloat16 || d == DType::kFloat32 || d == DType::kFloat64; };
  SCONCE_CHECK(real(dtype) && real(second.dtype()), kUnsupported, name,
               ": Expected both inputs to be Half, Float or Double tensors but got ", dtype_name(dtype), " and ",
               dtype_name(second.dtype()));
  SCONCE_CHECK(dtype == second.dtype(), kInvalidArgument, name, ": Expected object of scalar type ", dtype_name(dtype),
               " but got scalar type ", dtype_name(second.dtype()), " for second argument");
  return dtype == DType::kFloat16   ? DType::kComplex32
         : dtype == DType::kFloat32 ? DType::kComplex64
                                    : DType::kComplex128;
}

}  // namespace sconce
