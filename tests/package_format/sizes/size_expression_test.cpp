#include "package_format/sizes/size_expression.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <random>

using namespace sconce;
using Growth = SizeExpression::Growth;

namespace {

// The expression's text in Python's form, or "" if it is none.
std::string read(std::string_view text) {
  const auto expression = SizeExpression::parse(text);
  return expression ? expression->text() : "";
}

int64_t value(std::string_view text, std::vector<int64_t> values) {
  const auto expression = SizeExpression::parse(text);
  REQUIRE(expression);
  const auto result = expression->value(values);
  REQUIRE(result);
  return *result;
}

}  // namespace

TEST_CASE("size expression: what PyTorch writes") {
  CHECK(read("s77") == "s77");
  CHECK(read("2L*s17") == "2*s17");
  CHECK(read("1L + s77") == "1 + s77");
  CHECK(read("(-1L) + s77") == "-1 + s77");
  CHECK(read("s52 + s97") == "s52 + s97");
  CHECK(read("s17 - 2") == "s17 - 2");
  CHECK(read("static_cast<int64_t>(s17*s17)") == "s17*s17");
  CHECK(read("s17**2") == "s17*s17");
  CHECK(read("c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(2L))") == "s0 // 2");
  CHECK(read("2L*(c10::div_floor_integer(static_cast<int64_t>((-1L) + s0), static_cast<int64_t>(4L)))") ==
        "2*((-1 + s0) // 4)");
  CHECK(read("std::max(static_cast<int64_t>(s0), static_cast<int64_t>(s1))") == "Max(s0, s1)");
  CHECK(read("std::min<int64_t>({s0, 3L, s1})") == "Min(Min(s0, 3), s1)");
  CHECK(read("(static_cast<int64_t>(s0) % static_cast<int64_t>(4L))") == "s0 % 4");
  CHECK(read("c10::div_mod(s0, 4L)") == "s0 % 4");
  CHECK(read("FloorDiv(s0, 3)") == "s0 // 3");
  CHECK(read("(s0//2)") == "s0 // 2");
  CHECK(read("CeilDiv(s0, 3)") == "-((-s0) // 3)");
  CHECK(read("PythonMod(s0 + 1, 3)") == "(s0 + 1) % 3");
  CHECK(read("Max(1, s3 - 4)") == "Max(1, s3 - 4)");
  CHECK(read("ModularIndexing(s0, 2, 3)") == "(s0 // 2) % 3");
}

TEST_CASE("size expression: no other text is one") {
  for (const char* text : {"",
                           " ",
                           "s0 +",
                           "+ s0",
                           "s0 s1",
                           "2.5*s0",
                           "1.0/s0",
                           "s0 / 2",
                           "std::floor(s0)",
                           "static_cast<double>(s0)",
                           "s0 ** s1",
                           "s0**-1",
                           "s0**99",
                           "(s0",
                           "s0)",
                           "f(s0)",
                           "Mod(s0)",
                           "Mod(s0, 2, 3)",
                           "std::max({s0, s1)",
                           "s0 ? 1 : 2",
                           "99999999999999999999",
                           "12ab",
                           "a::b",
                           "s0 << 1",
                           "std::max<double>(s0, s1)",
                           "static_cast<int64_t>"})
    CHECK_MESSAGE(read(text) == "", text);
  // A package may hold anything.
  CHECK(read(std::string(100000, '(')) == "");
  CHECK(read(std::string(4000, '-') + "1") == "");
  std::string deep = "s0", wide = "s0", many = "s0";
  for (int i = 0; i < 40; ++i) deep = "s0*(" + deep + ")";
  for (int i = 0; i < 300; ++i) wide += "+s" + std::to_string(i);
  for (int i = 0; i < 100; ++i) many += "+s" + std::to_string(i);
  CHECK(read(deep) == "");
  CHECK(read(wide) == "");
  CHECK(read(many) != "");
  CHECK(read("s0**8**8**8") == "");
}

TEST_CASE("size expression: values") {
  CHECK(value("2*s0 + 1", {3}) == 7);
  CHECK(value("s0*s1 - s2", {3, 4, 5}) == 7);
  CHECK(value("-s0 // 2", {3}) == -2);
  CHECK(value("CeilDiv(s0, 2)", {3}) == 2);
  CHECK(value("Mod(0 - s0, 4)", {3}) == 1);
  CHECK(value("s0 % (0 - 4)", {3}) == -1);
  CHECK(value("Min(s0, s1) + Max(s0, s1)", {3, 9}) == 12);
  const std::vector<int64_t> large{INT64_MAX}, least{INT64_MIN}, zero{0};
  CHECK(!SizeExpression::parse("s0 + 1")->value(large));
  CHECK(!SizeExpression::parse("2*s0")->value(large));
  CHECK(!SizeExpression::parse("s0 - 1")->value(least));
  CHECK(!SizeExpression::parse("8 // s0")->value(zero));
  CHECK(!SizeExpression::parse("8 % s0")->value(zero));
  CHECK(!SizeExpression::parse("s0 // (0 - 1)")->value(least));
}

// placed() computes sums of multiples at once, and anything else step by step, as value() of parse() does.
TEST_CASE("size expression: sums that are computed at once have the values and the overflows of their steps") {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto large = [&] { return INT64_MAX >> below(40); };
  const std::function<std::string(int)> draw = [&](int depth) -> std::string {
    if (depth == 0 && below(3) > 0) return "s" + std::to_string(below(6));
    if (depth == 0) return std::to_string(below(8) == 0 ? large() : below(5));
    const std::string a = draw(below(depth)), b = draw(below(depth));
    return "(" + a + std::array{" + ", " - ", "*"}[static_cast<size_t>(below(3))] + b + ")";
  };
  int values_seen = 0, overflows = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = draw(4);
    CAPTURE(text);
    const auto stepwise = SizeExpression::parse(text);
    if (!stepwise) continue;
    std::vector<size_t> places;
    for (size_t k = 0; k < stepwise->symbols().size(); ++k) places.push_back(stepwise->symbols().size() - 1 - k);
    const SizeExpression placed = stepwise->placed(places);
    for (int k = 0; k < 8; ++k) {
      std::vector<int64_t> values(places.size()), moved(places.size());
      for (size_t n = 0; n < values.size(); ++n) {
        values[n] = below(4) == 0 ? large() - below(2) : below(16) == 0 ? -large() : below(9);
        moved[places[n]] = values[n];
      }
      const auto expected = stepwise->value(values);
      REQUIRE(placed.value(moved) == expected);
      ++(expected ? values_seen : overflows);
    }
  }
  CHECK(values_seen > 10'000);
  CHECK(overflows > 10'000);
}

TEST_CASE("size expression: its text reads as itself") {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::function<std::string(int)> draw = [&](int depth) -> std::string {
    if (depth == 0) return below(2) ? "s" + std::to_string(below(3)) : std::to_string(below(5));
    const std::string a = draw(below(depth)), b = draw(below(depth));
    switch (below(8)) {
      case 0:
        return "(" + a + ") + (" + b + ")";
      case 1:
        return "(" + a + ") - (" + b + ")";
      case 2:
        return "(" + a + ")*(" + b + ")";
      case 3:
        return "FloorDiv(" + a + ", " + b + ")";
      case 4:
        return "Mod(" + a + ", " + b + ")";
      case 5:
        return "Max(" + a + ", " + b + ")";
      case 6:
        return "-(" + a + ")";
      default:
        return "Min(" + a + ", " + b + ")";
    }
  };
  for (int i = 0; i < 2000; ++i) {
    const auto first = SizeExpression::parse("s0*0 + s1*0 + s2*0 + (" + draw(4) + ")");
    REQUIRE(first);
    CAPTURE(first->text());
    const auto again = SizeExpression::parse(first->text());
    REQUIRE(again);
    CHECK(again->text() == first->text());
    for (int k = 0; k < 8; ++k) {
      const std::vector<int64_t> values{below(9), below(9), below(9)};
      CHECK(again->value(values) == first->value(values));
    }
  }
}

TEST_CASE("size expression: how it grows") {
  const auto growth = [](std::string_view text, size_t symbol = 0) {
    return SizeExpression::parse(text)->growth(symbol);
  };
  CHECK(growth("s0") == Growth::kAffine);
  CHECK(growth("2*s0 + s1") == Growth::kAffine);
  CHECK(growth("2*s0 + s1", 1) == Growth::kAffine);
  CHECK(growth("s0*s1") == Growth::kAffine);
  CHECK(growth("8 - s0") == Growth::kAffine);
  CHECK(growth("s0*s0") == Growth::kStrict);
  CHECK(growth("s0*s0 + 3*s0") == Growth::kStrict);
  CHECK(growth("s0*s0 - s0") == Growth::kOther);
  CHECK(growth("s0*s0*s1") == Growth::kOther);  // s1 may be 0
  CHECK(growth("s0 // 2") == Growth::kOther);
  CHECK(growth("Max(s0, 3)") == Growth::kOther);
  CHECK(growth("s0 + s1 // 2") == Growth::kAffine);
  // Drawn values bear it out.
  std::mt19937 random(4);
  for (const char* text : {"s0*s0", "s0*s0 + 3*s0", "s0*(s0 + 1)*2", "s0*s0 + s1", "(s0 + s1)*(s0 + 2)"}) {
    if (growth(text) != Growth::kStrict) continue;
    for (int64_t s1 = 0; s1 < 5; ++s1)
      for (int64_t s0 = 0; s0 < 20; ++s0) {
        const auto expression = SizeExpression::parse(text);
        std::vector<int64_t> at{s0, s1}, next{s0 + 1, s1};
        CHECK(*expression->value(at) < *expression->value(next));
      }
  }
}
