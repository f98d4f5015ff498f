#include "server/support/json/float_text.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace sconce::server;

namespace {

// std::to_chars with a point, and whole numbers that the type holds exactly in full.
template <class T>
char* expected(char* p, T value) {
  if (!std::isfinite(value)) {
    const std::string_view text = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    std::memcpy(p, text.data(), text.size());
    return p + text.size();
  }
  const bool whole = std::fabs(value) < std::ldexp(T(1), std::numeric_limits<T>::digits) && std::trunc(value) == value;
  char* end =
      whole ? std::to_chars(p, p + 64, value, std::chars_format::fixed).ptr : std::to_chars(p, p + 64, value).ptr;
  if (std::string_view(p, static_cast<size_t>(end - p)).find_first_of(".e") == std::string_view::npos) {
    *end++ = '.';
    *end++ = '0';
  }
  return end;
}

char* write(char* p, float value) { return write_floats(p, &value, 1) - 1; }
char* write(char* p, double value) { return write_double(p, value); }

template <class T>
void check(T value) {
  char want[128], got[128];
  const std::string_view text(want, static_cast<size_t>(expected(want, value) - want));
  const std::string_view written(got, static_cast<size_t>(write(got, value) - got));
  if (text != written) CHECK(text == written);
}

// Four floats at a time, as writing does them.
size_t wrong_of(uint32_t first, uint32_t step) {
  float values[4];
  for (uint32_t i = 0; i < 4; ++i) values[i] = std::bit_cast<float>(first + i * step);
  char want[256], got[4 * (kFloatRoom + 1)];
  char* end = want;
  for (const float value : values) {
    end = expected(end, value);
    *end++ = ',';
  }
  const std::string_view text(want, static_cast<size_t>(end - want));
  const std::string_view written(got, static_cast<size_t>(write_floats(got, values, 4) - got));
  if (text != written) CHECK(text == written);
  return text != written;
}

}  // namespace

// SCONCE_EVERY_FLOAT=1 takes all of them, which takes minutes.
TEST_CASE("float_text: one of 1,009 floats of every exponent and sign") {
  const uint32_t step = std::getenv("SCONCE_EVERY_FLOAT") != nullptr ? 1 : 1009;
  size_t wrong = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32 && wrong < 10; bits += 4 * step)
    wrong += wrong_of(static_cast<uint32_t>(bits), step);
}

TEST_CASE_TEMPLATE("float_text: around powers of two and of ten, and the type's limits", T, float, double) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),          Limits::denorm_min(), Limits::min(),
                           Limits::max(), Limits::infinity(),   Limits::quiet_NaN()};
  for (int e = Limits::min_exponent - Limits::digits; e <= Limits::max_exponent; ++e)
    values.push_back(std::ldexp(T(1), e));
  for (int e = Limits::min_exponent10 - Limits::digits10; e <= Limits::max_exponent10; ++e) {
    for (const char* digits :
         {"1", "2", "5", "9", "12", "99", "123456", "999999", "1234567", "9999999", "12345678901234567"}) {
      const std::string text = std::string(digits) + "e" + std::to_string(e);
      T value{};
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) values.push_back(value);
    }
  }
  for (const T value : values) {
    T below = value, above = value;
    for (int step = 0; step < 20; ++step) {
      check(below);
      check(-above);
      below = std::nextafter(below, T(0));
      above = std::nextafter(above, Limits::infinity());
    }
  }
}

TEST_CASE("float_text: doubles of any bits, of floats, and of few digits") {
  std::mt19937_64 random(17);
  for (int i = 0; i < 200'000; ++i) {
    check(std::bit_cast<double>(random()));
    check(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(random()))));
    check(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 100) - 90));
    check(static_cast<double>(random() % 100'000) / std::pow(10, static_cast<double>(random() % 12)));
  }
}

TEST_CASE("float_text: any number of floats, each with a comma, within its room") {
  std::mt19937 random(19);
  for (size_t count = 0; count < 20; ++count) {
    std::vector<float> values(count);
    for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    std::string want, got(count * (kFloatRoom + 1) + 8, '#');
    for (const float value : values) {
      char text[64];
      want.append(text, expected(text, value)) += ',';
    }
    const size_t bytes = static_cast<size_t>(write_floats(got.data(), values.data(), count) - got.data());
    CHECK(got.substr(0, bytes) == want);
    CHECK(got.substr(got.size() - 8) == "########");
  }
}

TEST_CASE("float text: NaN and infinities are null if the process says so") {
  const float floats[] = {1.5F, -std::numeric_limits<float>::infinity(), std::nanf(""), -2.0F,
                          std::numeric_limits<float>::infinity()};
  const auto text = [&] {
    char out[kFloatRoom * 8];
    std::string written(out, write_floats(out, floats, 5));
    for (const double value : {-HUGE_VAL, std::nan(""), HUGE_VAL, -2.5}) {
      written.append(out, write_double(out, value));
      written += ',';
    }
    return written;
  };
  CHECK(text() == "1.5,-Infinity,NaN,-2.0,Infinity,-Infinity,NaN,Infinity,-2.5,");
  write_nan_as_null(true);
  const std::string nulls = text();
  write_nan_as_null(false);
  CHECK(nulls == "1.5,null,null,-2.0,null,null,null,null,-2.5,");
}
