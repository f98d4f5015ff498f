// Conversion of float16, bfloat16 and float8 from and to float32. Rounds to nearest, ties to even (float8_e8m0fnu: ties
// up). Matches c10::Half, c10::BFloat16 and c10::Float8_* of torch 2.15, except for overflow: see encode_float8.
#pragma once

#include <cstdint>
#include <optional>

#include "sconce/dtype.h"

namespace sconce::server {

float decode_float16(uint16_t bits) noexcept;
uint16_t encode_float16(float value) noexcept;
float decode_bfloat16(uint16_t bits) noexcept;
uint16_t encode_bfloat16(float value) noexcept;

// dtype: a float8 type.
float decode_float8(uint8_t bits, DType dtype) noexcept;
// nullopt for a value outside the type's range: a finite value beyond the largest, an infinity if the type has none, a
// negative value or zero for float8_e8m0fnu.
std::optional<uint8_t> encode_float8(float value, DType dtype) noexcept;

}  // namespace sconce::server
