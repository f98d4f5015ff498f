#include "src/support/excerpt.h"

#include <doctest/doctest.h>

#include <string>

using namespace sconce;

namespace {

const std::string kDots = "\xe2\x80\xa6";

}  // namespace

TEST_CASE("excerpt: short text is repeated as it is") {
  CHECK(excerpt("") == "");
  CHECK(excerpt("ARGS[0] \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\ \"") ==
        "ARGS[0] \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\ \"");
  CHECK(excerpt(std::string(200, 'x')) == std::string(200, 'x'));
}

TEST_CASE("excerpt: long text is cut to 200 bytes with an ellipsis") {
  CHECK(excerpt(std::string(201, 'x')) == std::string(197, 'x') + kDots);
  CHECK(excerpt(std::string(30'000'000, 'x')) == std::string(197, 'x') + kDots);
}

TEST_CASE("excerpt: a character is whole or not there") {
  for (const std::string character : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\n", "\xff", "\xc2\x85"}) {
    for (size_t before = 180; before <= 200; ++before) {
      std::string text(before, 'x');
      while (text.size() < 250) text += character;
      const std::string cut = excerpt(text);
      REQUIRE(cut.size() <= 200);
      REQUIRE(cut.size() >= 190);
      REQUIRE(cut.ends_with(kDots));
      std::string body =
          cut.substr(std::min(before, size_t{197}), cut.size() - kDots.size() - std::min(before, size_t{197}));
      const std::string one = excerpt(character);
      while (body.starts_with(one)) body.erase(0, one.size());
      REQUIRE(body == "");
    }
  }
}

TEST_CASE("excerpt: control characters and what is not UTF-8 are escaped") {
  CHECK(excerpt(std::string_view("a\0\n\x1b[31m\x7f", 9)) == "a\\0\\x0a\\x1b[31m\\x7f");
  CHECK(excerpt("\xc2\x85\xc2\xa0") == "\\xc2\\x85\xc2\xa0");                      // U+0085 is one, U+00A0 is none
  CHECK(excerpt("\xff\xc0\xaf\xed\xa0\x80") == "\\xff\\xc0\\xaf\\xed\\xa0\\x80");  // overlong, a surrogate
  CHECK(excerpt("\xe2\x82") == "\\xe2\\x82");                                      // cut short
}

TEST_CASE("excerpt: messages are shortened between characters") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcdefgh", 6) == "abc" + kDots);
  CHECK(shortened("ab\xc3\xa9"
                  "defgh",
                  6) == "ab" + kDots);
}
