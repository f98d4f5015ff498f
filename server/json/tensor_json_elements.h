// C++ types for the dtypes of tensors in JSON.
#pragma once

#include <cstdint>

#include "sconce/check.h"
#include "sconce/dtype.h"

namespace sconce::server {

// Types of their own for elements that need a conversion.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
template <DType dtype>
struct Float8 {
  uint8_t bits;
};

// Calls f.template operator()<T>() with the C++ type for dtype.
template <class F>
auto with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kUInt16:
      return f.template operator()<uint16_t>();
    case DType::kUInt32:
      return f.template operator()<uint32_t>();
    case DType::kUInt64:
      return f.template operator()<uint64_t>();
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kBool:
      return f.template operator()<bool>();
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kBFloat16:
      return f.template operator()<BFloat>();
    case DType::kFloat8E5M2:
      return f.template operator()<Float8<DType::kFloat8E5M2>>();
    case DType::kFloat8E4M3FN:
      return f.template operator()<Float8<DType::kFloat8E4M3FN>>();
    case DType::kFloat8E5M2FNUZ:
      return f.template operator()<Float8<DType::kFloat8E5M2FNUZ>>();
    case DType::kFloat8E4M3FNUZ:
      return f.template operator()<Float8<DType::kFloat8E4M3FNUZ>>();
    case DType::kFloat8E8M0FNU:
      return f.template operator()<Float8<DType::kFloat8E8M0FNU>>();
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kFloat4E2M1FNx2:
      break;
  }
  SCONCE_FAIL(kInvalidArgument, "elements of this dtype have no JSON form, send bytes: ", dtype_name(dtype));
}

}  // namespace sconce::server
