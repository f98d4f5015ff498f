// Runs code with the C++ type of a dtype.
#pragma once

#include "sconce/check.h"
#include "sconce/float_types.h"

namespace sconce::server {

// Calls f.template operator()<T>() with the C++ type T of the dtype.
template <class F>
auto with_cpp_type(DType dtype, F&& f) {
  switch (dtype) {
#define SCONCE_X(enumerator, type) \
  case DType::enumerator:          \
    return f.template operator()<type>();
    SCONCE_CPP_TYPES(SCONCE_X)
#undef SCONCE_X
  }
  SCONCE_FAIL(kInternal, "no such dtype: ", static_cast<int>(dtype));
}

}  // namespace sconce::server
