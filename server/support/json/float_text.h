// Floats as decimal text: the fewest digits that read back as the same value, and of those the nearest to it, laid out
// as std::to_chars does, always with a point or an exponent. NaN, Infinity and -Infinity are bare tokens, or null.
// Whole numbers that the type holds exactly are written out: 100000.0.
#pragma once

#include <cstddef>

namespace sconce::server {

// Bytes from its start that writing one value may touch.
constexpr size_t kFloatRoom = 48;

// Writes `count` values, each with a comma behind it. Returns where the text ends. Four at a time, without branches for
// those from 0.001 to 2^24.
char* write_floats(char* p, const float* values, size_t count) noexcept;
char* write_double(char* p, double value) noexcept;
// Whether NaN and infinities are null from now on, in the whole process (setting nan_as_null).
void write_nan_as_null(bool on) noexcept;

}  // namespace sconce::server
