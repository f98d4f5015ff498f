// Returns a kernel's results to the C ABI as new handles; a null target is skipped.
#pragma once

#include <array>
#include <utility>

#include "src/aoti_abi/abi_types.h"

namespace sconce::aoti_abi {

// Writes all results or none, so that a throw leaks no handles.
inline void deliver(Tensor result, AtenTensorHandle* out) {
  if (out) *out = new_handle(std::move(result));
}

template <size_t N, class... Out>
void deliver(std::array<Tensor, N> results, Out... outs) {
  static_assert(sizeof...(Out) == N);
  AtenTensorHandle* const targets[] = {outs...};
  struct Handles : std::array<AtenTensorHandle, N> {
    ~Handles() {
      for (AtenTensorHandle handle : *this) delete_handle(handle);
    }
  } handles{};
  for (size_t i = 0; i < N; ++i)
    if (targets[i]) handles[i] = new_handle(std::move(results[i]));
  for (size_t i = 0; i < N; ++i)
    if (targets[i]) *targets[i] = std::exchange(handles[i], nullptr);
}

}  // namespace sconce::aoti_abi
