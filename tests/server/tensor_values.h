// The elements of a tensor, for comparison.
#pragma once

#include <vector>

#include "server/support/memory/request_memory.h"

namespace sconce::server {

template <class T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out(static_cast<size_t>(tensor.numel()));
  copy_to_contiguous(tensor, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

}  // namespace sconce::server
