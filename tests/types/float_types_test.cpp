#include "sconce/float_types.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

using namespace sconce;

namespace {

enum class Overflow { kInfinity, kNan, kSaturates };

// Rounds to nearest by search among all codes, ties to the even code: the definition, independent of the bit tricks.
template <class T>
void check_rounding(int codes, double overflow_from, Overflow overflow) {
  std::vector<int> order;  // non-negative finite codes: ascending values
  for (int code = 0; code < codes; ++code) {
    const T value = std::bit_cast<T>(static_cast<decltype(T::bits)>(code));
    if (std::isfinite(static_cast<float>(value))) order.push_back(code);
  }
  int wrong = 0;
  const auto encode = [](double x) { return static_cast<int>(T(static_cast<float>(x)).bits); };
  const auto decode = [](int code) {
    return static_cast<double>(static_cast<float>(std::bit_cast<T>(static_cast<decltype(T::bits)>(code))));
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const double value = decode(order[i]);
    wrong += encode(value) != order[i];
    if (i + 1 == order.size()) break;
    const double next = decode(order[i + 1]), middle = (value + next) / 2;
    wrong += next <= value;
    wrong += encode(middle) != (order[i] % 2 == 0 ? order[i] : order[i + 1]);
    wrong += encode(std::nextafter(static_cast<float>(middle), 0.0f)) != order[i];
    wrong += encode(std::nextafter(static_cast<float>(middle), std::numeric_limits<float>::infinity())) != order[i + 1];
  }
  CHECK(wrong == 0);
  const float over = static_cast<float>(T(static_cast<float>(overflow_from)));
  switch (overflow) {
    case Overflow::kInfinity:
      CHECK(std::isinf(over));
      break;
    case Overflow::kNan:
      CHECK(std::isnan(over));
      break;
    case Overflow::kSaturates:
      CHECK(over == decode(order.back()));
      break;
  }
  CHECK(static_cast<float>(T(std::nextafter(static_cast<float>(overflow_from), 0.0f))) == decode(order.back()));
  CHECK(std::isnan(static_cast<float>(T(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(static_cast<float>(T(-std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace

TEST_CASE("float_types: conversion from float rounds to nearest, ties to even") {
  check_rounding<Half>(0x8000, 65520, Overflow::kInfinity);
  check_rounding<BFloat16>(0x8000, 0x1.FFp127, Overflow::kInfinity);
  check_rounding<Float8E5M2>(0x80, 61440, Overflow::kInfinity);
  check_rounding<Float8E5M2FNUZ>(0x80, 61440, Overflow::kNan);
  check_rounding<Float8E4M3FNUZ>(0x80, 248, Overflow::kNan);
  check_rounding<Float8E4M3FN>(0x80, 464, Overflow::kSaturates);
}

TEST_CASE("float_types: signs and zeros") {
  CHECK(Half(-1.5f).bits == 0xBE00);
  CHECK(BFloat16(-1.5f).bits == 0xBFC0);
  CHECK(Float8E5M2(-0.0f).bits == 0x80);
  CHECK(Float8E4M3FN(-448.0f).bits == 0xFE);
  CHECK(Float8E5M2FNUZ(-0.0f).bits == 0);
  CHECK(Float8E4M3FNUZ(-1e-9f).bits == 0);
  CHECK(Float8E4M3FNUZ(-1.0f).bits == 0xC0);
  CHECK(Float8E8M0FNU(1.0f).bits == 127);
  CHECK(Float8E8M0FNU(3.0f).bits == 129);  // half way between 2 and 4
  CHECK(Float8E8M0FNU(std::numeric_limits<float>::infinity()).bits == 255);
  CHECK(static_cast<float>(std::bit_cast<Float8E8M0FNU>(uint8_t{0})) == 0x1p-127f);
}

TEST_CASE("float_types: constant evaluation agrees with the hardware") {
  static_assert(Half(1.0f).bits == 0x3C00);
  static_assert(Half(65519.0f).bits == 0x7BFF);
  static_assert(Half(0x1p-25f).bits == 0);
  static_assert(Half(0x1.8p-25f).bits == 1);
  static_assert(static_cast<float>(std::bit_cast<Half>(uint16_t{1})) == 0x1p-24f);
  static_assert(BFloat16(3.14159f).bits == 0x4049);
  CHECK(Half(0x1.8p-25f).bits == 1);
}

TEST_CASE("float_types: dtypes and types name each other") {
  static_assert(kDType<Half> == DType::kFloat16);
  static_assert(std::is_same_v<CppType<DType::kComplex64>, std::complex<float>>);
  static_assert(std::is_same_v<ComputeType<BFloat16>, float>);
  static_assert(std::is_same_v<ComputeType<ComplexHalf>, std::complex<float>>);
  static_assert(std::is_same_v<ComputeType<int8_t>, int8_t>);
  static_assert(kIsSmallFloat<Float8E5M2> && !kIsSmallFloat<float> && !kIsSmallFloat<ComplexHalf>);
  std::set<DType> seen;
#define SCONCE_X(enumerator, type) seen.insert(kDType<type>);
  SCONCE_CPP_TYPES(SCONCE_X)
#undef SCONCE_X
  CHECK(seen.size() == 22);
}

TEST_CASE("float_types: the one NaN of float8 types without a negative zero has no sign") {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  CHECK(bits(std::bit_cast<Float8E5M2FNUZ>(uint8_t{0x80})) == 0x7F800001u);
  CHECK(bits(std::bit_cast<Float8E4M3FNUZ>(uint8_t{0x80})) == 0x7F800001u);
}
