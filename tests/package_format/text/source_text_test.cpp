#include "package_format/text/source_text.h"

#include <doctest/doctest.h>

using namespace sconce;

TEST_CASE("source text: lines without their ends and blanks") {
  std::string_view text = "  one\r\n\n\ttwo  \nthree";
  CHECK(skip_line(text) == "one");
  CHECK(skip_line(text) == "");
  CHECK(skip_line(text) == "two");
  CHECK(skip_line(text) == "three");
  CHECK(!skip_line(text));
}

TEST_CASE("source text: words, numbers and marks") {
  std::string_view text = "arg0_1[12L] -7";
  CHECK(skip_word(text) == "arg0_1");
  CHECK(!skip(text, "("));
  CHECK(skip(text, "["));
  CHECK(skip_integer(text) == 12);
  CHECK(skip_to(text, "] ") == "L");
  CHECK(skip_integer(text) == -7);
  CHECK(!skip_integer(text));
  std::string_view huge = "99999999999999999999";
  CHECK(!skip_integer(huge));
  CHECK(find_text("abcabc", "bc", 2) == 4);
  CHECK(find_text("abc", "x") == std::string_view::npos);
  CHECK(find_text("abc", "a", 9) == std::string_view::npos);
}

TEST_CASE("source text: string literals") {
  const auto value = [](std::string_view text) { return skip_string(text); };
  CHECK(value(R"("plain";)") == "plain");
  CHECK(value(R"("a\"b\\c\n\t\x41\101\0z";)") == std::string("a\"b\\c\n\tAA\0z", 11));
  CHECK(value(R"x(R"(raw "quoted" \n)";)x") == R"(raw "quoted" \n)");
  CHECK(value("R\"--(a)\" b)--\";") == "a)\" b");
  CHECK(value("\n    R\"(one )\"\n    R\"(two)\"\n    \" three\";") == "one two three");  // long ones are cut up
  CHECK(value("\"\";") == "");
  CHECK(!value("name;"));
  CHECK(!value("\"no end"));
  CHECK(!value("R\"(no end"));
  CHECK(!value("R\"no parenthesis"));
  CHECK(!value(R"("bad \q")"));
  CHECK(!value("\"ends in a backslash\\"));
  std::string_view rest = R"("one"; "two")";
  CHECK(skip_string(rest) == "one");
  CHECK(rest == R"(; "two")");
}
