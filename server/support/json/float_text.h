// Floats as decimal text: the fewest digits that read back as the same value, and of these the nearest to it, in the
// layout of std::to_chars, always with a point or an exponent. NaN, Infinity and -Infinity are bare tokens, or null.
// Whole numbers that the type represents exactly have no exponent: 100000.0.
#pragma once

#include <cstddef>

namespace sconce::server {

// Bytes from the start that writing one value may modify.
constexpr size_t kFloatRoom = 48;

// Writes `count` values, each followed by a comma. Returns the end of the text. Values from 0.001 to 2^24 are written
// four at a time, without branches.
char* write_floats(char* p, const float* values, size_t count) noexcept;
char* write_double(char* p, double value) noexcept;
// Sets whether NaN and infinities are written as null, in the whole process (setting nan_as_null).
void write_nan_as_null(bool on) noexcept;

}  // namespace sconce::server
