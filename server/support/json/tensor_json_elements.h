// C++ types for tensor dtypes in JSON.
#pragma once

#include <cstdint>

#include "server/support/cpp_type.h"

namespace sconce::server {

// Distinct types for elements that need a conversion.
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
void with_element_type(DType dtype, F&& f) {
  with_cpp_type(dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      f.template operator()<T>();
    } else if constexpr (std::is_same_v<T, sconce::Half>) {
      f.template operator()<Half>();
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      f.template operator()<BFloat>();
    } else if constexpr (kIsSmallFloat<T>) {
      f.template operator()<Float8<kDType<T>>>();
    } else {
      SCONCE_FAIL(kInvalidArgument, "elements of this dtype have no JSON form, send bytes: ", dtype_name(dtype));
    }
  });
}

}  // namespace sconce::server
