#include "server/support/json/small_floats.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace sconce;
using namespace sconce::server;

TEST_CASE("small_floats: every float16 and bfloat16 decodes and encodes to itself") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto code = static_cast<uint16_t>(bits);
    if (const float value = decode_float16(code); !std::isnan(value)) REQUIRE(encode_float16(value) == code);
    if (const float value = decode_bfloat16(code); !std::isnan(value)) REQUIRE(encode_bfloat16(value) == code);
  }
  CHECK(decode_float16(0x3555) == 0x1.554p-2f);
  CHECK(decode_float16(0x0001) == 0x1p-24f);
  CHECK(std::isnan(decode_bfloat16(encode_bfloat16(NAN))));
}

namespace {

struct Encoded {
  uint32_t value;
  uint32_t code;
};

struct Float8Case {
  DType dtype;
  std::vector<uint32_t> decoded;  // upper halves; the lower ones are zero
  std::vector<Encoded> encoded;
};

std::vector<Float8Case> pytorch_cases() {
  std::vector<Float8Case> cases;
#define FLOAT8_DECODE(name, ...) cases.push_back({DType::kFloat8##name, {__VA_ARGS__}, {}});
#define FLOAT8_ENCODE(name, ...) cases.back().encoded = {__VA_ARGS__};
#include "tests/server/float8_cases.inc"
#undef FLOAT8_DECODE
#undef FLOAT8_ENCODE
  return cases;
}

}  // namespace

TEST_CASE("small_floats: float8 means and rounds as in PyTorch") {
  for (const Float8Case& c : pytorch_cases()) {
    CAPTURE(dtype_name(c.dtype));
    REQUIRE(c.decoded.size() == 256);
    for (uint32_t code = 0; code < 256; ++code) {
      CAPTURE(code);
      const float got = decode_float8(static_cast<uint8_t>(code), c.dtype);
      const float want = std::bit_cast<float>(c.decoded[code] << 16);
      if (std::isnan(want)) {
        REQUIRE(std::isnan(got));
      } else {
        REQUIRE(std::bit_cast<uint32_t>(got) == c.decoded[code] << 16);
        REQUIRE(encode_float8(got, c.dtype) == static_cast<uint8_t>(code));
      }
    }
    for (const auto& [value, code] : c.encoded) {
      CAPTURE(std::bit_cast<float>(value));
      REQUIRE(encode_float8(std::bit_cast<float>(value), c.dtype) == static_cast<uint8_t>(code));
    }
    CHECK(std::isnan(decode_float8(*encode_float8(NAN, c.dtype), c.dtype)));
    CHECK_FALSE(encode_float8(std::numeric_limits<float>::max(), c.dtype).has_value());
  }
}

TEST_CASE("small_floats: float8 refuses what it cannot hold") {
  CHECK_FALSE(encode_float8(464.1f, DType::kFloat8E4M3FN).has_value());
  CHECK(encode_float8(464.0f, DType::kFloat8E4M3FN) == uint8_t{0x7e});
  CHECK_FALSE(encode_float8(INFINITY, DType::kFloat8E4M3FN).has_value());
  CHECK(encode_float8(-INFINITY, DType::kFloat8E5M2) == uint8_t{0xfc});
  CHECK_FALSE(encode_float8(61440.0f, DType::kFloat8E5M2).has_value());
  CHECK_FALSE(encode_float8(0.0f, DType::kFloat8E8M0FNU).has_value());
  CHECK_FALSE(encode_float8(-1.0f, DType::kFloat8E8M0FNU).has_value());
  CHECK_FALSE(encode_float8(INFINITY, DType::kFloat8E5M2FNUZ).has_value());
}
