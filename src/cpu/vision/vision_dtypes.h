// The dtypes of torchvision's kernels.
#pragma once

#include "src/tensor/elements/dispatch.h"

namespace sconce::cpu {

// float, double, half. `name` is that of torchvision's kernel, as in its own error.
template <class F>
decltype(auto) dispatch_vision(DType dtype, std::string_view name, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kFloat16>(dtype, name, f);
}

}  // namespace sconce::cpu
