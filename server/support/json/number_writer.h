// Writes elements of a tensor as JSON text: integers exactly, floats as in float_text.h.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "server/support/json/float_text.h"
#include "server/support/json/small_floats.h"
#include "server/support/json/tensor_json_elements.h"

namespace sconce::server {

// Bytes that writing one element may modify.
constexpr size_t kElementRoom = kFloatRoom;

inline float to_float(float value) noexcept { return value; }
inline float to_float(Half value) noexcept { return decode_float16(value.bits); }
inline float to_float(BFloat value) noexcept { return decode_bfloat16(value.bits); }
template <DType dtype>
float to_float(Float8<dtype> value) noexcept {
  return decode_float8(value.bits, dtype);
}

// Writes `count` elements, `stride` elements apart, each followed by a comma. Returns the end of the text.
template <class T>
char* write_elements(char* p, const T* data, int64_t count, int64_t stride) noexcept {
  if constexpr (std::integral<T> || std::same_as<T, double>) {
    for (int64_t i = 0; i < count; ++i) {
      const T value = data[i * stride];
      if constexpr (std::same_as<T, bool>) {
        const std::string_view text = value ? "true" : "false";
        std::memcpy(p, text.data(), text.size());
        p += text.size();
      } else if constexpr (std::integral<T>) {
        p = std::to_chars(p, p + kElementRoom, value).ptr;
      } else {
        p = write_double(p, value);
      }
      *p++ = ',';
    }
  } else if (std::same_as<T, float> && stride == 1) {
    p = write_floats(p, reinterpret_cast<const float*>(data), static_cast<size_t>(count));
  } else {
    float block[64];
    for (int64_t i = 0; i < count;) {
      int64_t n = 0;
      for (; n < 64 && i < count; ++n, ++i) block[n] = to_float(data[i * stride]);
      p = write_floats(p, block, static_cast<size_t>(n));
    }
  }
  return p;
}

}  // namespace sconce::server
