#include "src/runner/constants/finite_check.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

using namespace sconce;
using namespace sconce::runner;

namespace {

template <class T>
std::optional<int64_t> first(DType dtype, const std::vector<T>& values) {
  return first_not_finite(dtype, std::as_bytes(std::span(values)));
}

}  // namespace

TEST_CASE("finite check: finds the first NaN or infinity, at any place") {
  std::vector<float> values(10'000, -3.4e38F);
  CHECK(!first(DType::kFloat32, values));
  values[9'999] = std::numeric_limits<float>::quiet_NaN();
  CHECK(first(DType::kFloat32, values) == 9'999);
  values[5'000] = -std::numeric_limits<float>::infinity();
  CHECK(first(DType::kFloat32, values) == 5'000);
  values[0] = std::numeric_limits<float>::infinity();
  CHECK(first(DType::kFloat32, values) == 0);
}

TEST_CASE("finite check: every dtype that has such values") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(first<double>(DType::kFloat64, {1, 1.7e308, -inf}) == 2);
  CHECK(first<double>(DType::kComplex128, {1, 2, 3, inf}) == 1);
  CHECK(first<float>(DType::kComplex64, {1, 2, static_cast<float>(inf), 3}) == 1);
  CHECK(first<uint16_t>(DType::kFloat16, {0x7bff, 0xfc00}) == 1);  // 65504, -inf
  CHECK(first<uint16_t>(DType::kComplex32, {0, 0, 0, 0x7e00}) == 1);
  CHECK(first<uint16_t>(DType::kBFloat16, {0x7f7f, 0x7fc0}) == 1);
  CHECK(first<uint8_t>(DType::kFloat8E5M2, {0x7b, 0xfc}) == 1);
  CHECK(first<uint8_t>(DType::kFloat8E4M3FN, {0x7e, 0xff}) == 1);
  CHECK(first<uint8_t>(DType::kFloat8E4M3FNUZ, {0x7f, 0xff, 0x80}) == 2);
  CHECK(first<uint8_t>(DType::kFloat8E5M2FNUZ, {0x7f, 0xff, 0x80}) == 2);
  CHECK(first<uint8_t>(DType::kFloat8E8M0FNU, {0xfe, 0xff}) == 1);
  CHECK(!first<int32_t>(DType::kInt32, {0x7f800000, -1}));
  CHECK(!first<uint8_t>(DType::kFloat32, {}));
}

TEST_CASE("finite check: elements at odd addresses") {
  std::vector<std::byte> bytes(4 * 100 + 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 1 + 4 * 70, &nan, sizeof nan);
  CHECK(first_not_finite(DType::kFloat32, std::span(bytes).subspan(1)) == 70);
}
