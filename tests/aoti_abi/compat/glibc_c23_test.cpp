// Expected values: C23 7.24.1.7 (strtol) and 7.23.6.2 (fscanf).
#include <doctest/doctest.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cwchar>
#include <string>

extern "C" {
long __isoc23_strtol(const char*, char**, int);
unsigned long __isoc23_strtoul(const char*, char**, int);
long long __isoc23_strtoll(const char*, char**, int);
unsigned long long __isoc23_strtoull(const char*, char**, int);
intmax_t __isoc23_strtoimax(const char*, char**, int);
long __isoc23_wcstol(const wchar_t*, wchar_t**, int);
int __isoc23_sscanf(const char*, const char*, ...);
}

namespace {

struct Case {
  const char* text;
  int base;
  long value;
  int used;  // characters
};
constexpr Case kCases[] = {
    {"42", 10, 42, 2},      {" -17x", 10, -17, 4},   {"0x1F", 0, 31, 4},  {"017", 0, 15, 3},        {"0b101", 0, 5, 5},
    {"0B11", 2, 3, 4},      {"  -0b110z", 0, -6, 8}, {"+0b1", 2, 1, 4},   {"0b", 0, 0, 1},          {"0b2", 0, 0, 1},
    {"0b0", 2, 0, 3},       {"0b1012", 0, 5, 5},     {"0b101", 10, 0, 1}, {"0b101", 16, 0xb101, 5}, {"", 0, 0, 0},
    {"0b0000001", 0, 1, 9}, {"101", 2, 5, 3},        {"-", 0, 0, 0},
};

}  // namespace

TEST_CASE("isoc23: strtol and its kin, binary prefix included") {
  for (const Case& c : kCases) {
    CAPTURE(c.text);
    CAPTURE(c.base);
    char* end = nullptr;
    CHECK(__isoc23_strtol(c.text, &end, c.base) == c.value);
    CHECK(end - c.text == c.used);
    CHECK(__isoc23_strtoll(c.text, &end, c.base) == c.value);
    CHECK(end - c.text == c.used);
    CHECK(__isoc23_strtoul(c.text, nullptr, c.base) == static_cast<unsigned long>(c.value));
    CHECK(__isoc23_strtoull(c.text, nullptr, c.base) == static_cast<unsigned long long>(c.value));
    CHECK(__isoc23_strtoimax(c.text, nullptr, c.base) == c.value);
    wchar_t wide[32];
    std::mbstowcs(wide, c.text, 32);
    wchar_t* wide_end = nullptr;
    CHECK(__isoc23_wcstol(wide, &wide_end, c.base) == c.value);
    CHECK(wide_end - wide == c.used);
  }
}

TEST_CASE("isoc23: a binary number that does not fit") {
  const std::string most = "0b0" + std::string(63, '1'), over = "0b1" + std::string(63, '0');
  const std::string huge = "-0b" + std::string(200, '1') + "2";
  char* end = nullptr;
  errno = 0;
  CHECK(__isoc23_strtol(most.c_str(), &end, 0) == LONG_MAX);
  CHECK(errno == 0);
  CHECK(__isoc23_strtol(over.c_str(), &end, 0) == LONG_MAX);
  CHECK(errno == ERANGE);
  errno = 0;
  CHECK(__isoc23_strtoul(over.c_str(), &end, 0) == 1UL << 63);
  CHECK(errno == 0);
  CHECK(__isoc23_strtol(huge.c_str(), &end, 2) == LONG_MIN);
  CHECK(errno == ERANGE);
  CHECK(*end == '2');
}

TEST_CASE("isoc23: sscanf") {
  int number = 0;
  char word[8] = {};
  CHECK(__isoc23_sscanf("cuda:12", "%4[a-z]:%d", word, &number) == 2);
  CHECK(std::string(word) == "cuda");
  CHECK(number == 12);
}
