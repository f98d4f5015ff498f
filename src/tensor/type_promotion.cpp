#include "src/tensor/type_promotion.h"

#include "sconce/check.h"
#include "src/tensor/factory.h"

namespace sconce {
namespace {

bool is_wide_unsigned(DType d) { return d == DType::kUInt16 || d == DType::kUInt32 || d == DType::kUInt64; }
bool is_float4(DType d) { return d == DType::kFloat4E2M1FNx2; }
bool is_any_float(DType d) { return is_floating(d) || is_float8(d) || is_float4(d); }

// Integers of up to 64 signed bits, bool among them: the wider wins, signs mixed go one wider.
int integer_rank(DType d) {
  switch (d) {
    case DType::kBool:
      return 0;
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kInt16:
      return 2;
    case DType::kInt32:
      return 3;
    default:
      return 4;
  }
}

int float_rank(DType d) {
  switch (d) {
    case DType::kFloat32:
      return 2;
    case DType::kFloat64:
      return 3;
    default:
      return 1;
  }
}

DType to_complex(DType d) {
  switch (d) {
    case DType::kFloat16:
      return DType::kComplex32;
    case DType::kFloat64:
      return DType::kComplex128;
    default:
      return is_complex(d) ? d : DType::kComplex64;
  }
}

// The kind of `higher` decides; `lower` can only raise the category.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_wide_unsigned(*higher) && is_complex(*lower)) return lower;
  if (is_any_float(*higher)) {
    if (!is_complex(*lower)) return higher;
    SCONCE_CHECK(is_floating(*higher) && *higher != DType::kBFloat16, kUnsupported, "Promotion of ",
                 dtype_name(*higher), " and a complex number is not supported");
    return to_complex(*higher);
  }
  if (*higher == DType::kBool || is_any_float(*lower) || is_complex(*lower)) return promote_types(*higher, *lower);
  return higher;
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    if (is_floating(a) || is_float4(a)) return a;
    if (is_floating(b) || is_float4(b)) return b;
    SCONCE_FAIL(kUnsupported, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ",
                dtype_name(a), " and ", dtype_name(b));
  }
  SCONCE_CHECK(!is_float8(a) && !is_float8(b) && !is_float4(a) && !is_float4(b), kUnsupported,
               "Promotion for Float8 Types is not supported, attempted to promote ", dtype_name(a), " and ",
               dtype_name(b));
  if (is_complex(a) || is_complex(b)) {
    const DType x = value_dtype(a), y = value_dtype(b);
    if (!is_complex(a) && !is_floating(a)) return b;
    if (!is_complex(b) && !is_floating(b)) return a;
    return to_complex(promote_types(x, y));
  }
  if (is_floating(a) || is_floating(b)) {
    if (!is_floating(a)) return b;
    if (!is_floating(b)) return a;
    if (float_rank(a) == float_rank(b)) return DType::kFloat32;  // half and bfloat16
    return float_rank(a) > float_rank(b) ? a : b;
  }
  if (integer_rank(a) == integer_rank(b)) return DType::kInt16;  // uint8 and int8
  return integer_rank(a) > integer_rank(b) ? a : b;
}

bool can_cast(DType from, DType to) noexcept {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_any_float(from) && is_integral(to, false)) return false;
  return from == DType::kBool || to != DType::kBool;
}

ResultType& ResultType::add(const Tensor& tensor) {
  std::optional<DType>& kind = tensor.dim() > 0 ? dims_ : zero_dim_;
  kind = kind ? promote_types(*kind, tensor.dtype()) : tensor.dtype();
  return *this;
}

ResultType& ResultType::add_number(const Scalar& number) {
  const DType dtype = number.is_complex() ? DType::kComplex64 : number.is_floating() ? kDefaultDType : number.dtype();
  number_ = number_ ? promote_types(*number_, dtype) : dtype;
  return *this;
}

DType ResultType::get() const { return combine(dims_, combine(zero_dim_, number_)).value(); }

}  // namespace sconce
