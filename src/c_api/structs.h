// Versioned structs of the C API: they begin with `size`, and a caller may have been compiled against another version.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/c_api/boundary.h"

namespace sconce::c_api {

// The size of the caller's struct, from its first member. Structs of a later version may be larger, but never smaller
// than ours.
template <class T>
size_t checked_size(const T& given, const char* name) {
  size_t size;
  std::memcpy(&size, &given, sizeof size);
  SCONCE_CHECK(size >= sizeof(T) && size % alignof(T) == 0 && size <= 65536, kInvalidArgument, name,
               ": its size is to be sizeof the struct, ", sizeof(T), ", and is ", size);
  return size;
}

// A copy of the options; defaults if they are null. kInvalidArgument for a wrong size, and for members of a later
// version that are not zero.
template <class T>
T taken(const T* given, const char* name) {
  if (!given) return T{};
  const size_t size = checked_size(*given, name);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  SCONCE_CHECK(std::all_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte == 0; }),
               kInvalidArgument, name, " sets what this version does not know: it has ", size, " bytes, known are ",
               sizeof(T));
  return *given;
}

// Fills the caller's struct; members that this version does not know become zero.
template <class T>
void put(T* to, T value, size_t size) noexcept {
  std::memset(static_cast<void*>(to), 0, size);
  value.size = size;
  std::memcpy(static_cast<void*>(to), &value, sizeof value);
}
template <class T>
void put(T* to, const char* name, const T& value) {
  put(to, value, checked_size(required(to, name), name));
}

// Fills an array. The `size` of its first struct applies to all.
template <class T, class Values>
void put_all(T* to, size_t room, size_t* count, const char* name, const Values& values) {
  required(count, "count");
  if (room > 0) {
    const size_t size = checked_size(required(to, name), name);
    for (size_t i = 0; i < std::min(room, values.size()); ++i)
      put(reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(to) + i * size), values[i], size);
  }
  *count = values.size();
}

}  // namespace sconce::c_api
