// PerDevice holds one T for each device of the machine.
#pragma once

#include <array>
#include <cstddef>

namespace sconce::cuda {

template <class T>
class PerDevice {
 public:
  T& operator[](int device) noexcept { return all_[static_cast<size_t>(device) % all_.size()]; }

 private:
  std::array<T, 64> all_{};
};

}  // namespace sconce::cuda
