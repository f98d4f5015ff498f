// TensorForm: a tensor without its bytes, for values derived from several storages of the same layout.
#pragma once

#include <cstdint>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

struct TensorForm {
  DType dtype;
  Layout layout;
  std::vector<int64_t> sizes, strides;
  int64_t offset;

  explicit TensorForm(const Tensor& t)
      : dtype(t.dtype()),
        layout(t.layout()),
        sizes(t.sizes().begin(), t.sizes().end()),
        strides(t.strides().begin(), t.strides().end()),
        offset(t.storage_offset()) {}
  Tensor over(Storage& storage) const {
    return Tensor(StoragePtr::share(storage), dtype, sizes, strides, offset, layout);
  }
};

}  // namespace sconce
