// Handle owns an object that a CUDA library creates and destroys by C functions.
#pragma once

namespace sconce::cuda {

// value: null until the library's create function wrote it.
template <class T, auto Destroy>
struct Handle {
  T value{};
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (value) Destroy(value);
  }
};

}  // namespace sconce::cuda
