// Names of an enum's values, which must count from 0.
#pragma once

#include <cstddef>

namespace sconce::server {

// name_of(state, {"running", "done"})
template <class E, size_t N>
constexpr const char* name_of(E value, const char* const (&names)[N]) noexcept {
  const auto index = static_cast<size_t>(value);
  return index < N ? names[index] : "unknown";
}

}  // namespace sconce::server
