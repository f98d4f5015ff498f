#include "sconce/sizes/size_relations.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "tests/errors.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

namespace {

// A vector for each dimension, all of one input each.
std::vector<TensorSpec> inputs_of(const std::vector<Dim>& dims) {
  std::vector<TensorSpec> inputs;
  for (const Dim& dim : dims) {
    TensorSpec spec;
    spec.dims = {dim};
    inputs.push_back(spec);
  }
  return inputs;
}

std::string refusal(const std::vector<Dim>& dims, const Ints& sizes) {
  const SizeRelations relations(inputs_of(dims));
  const auto violation =
      relations.violation(sizes, [](size_t i) { return std::string(1, static_cast<char>('x' + i)); });
  CHECK(relations.agrees(sizes) == !violation);
  return violation ? violation->text : "";
}

Ints made(const std::vector<Dim>& dims, const std::map<std::string, int64_t>& given = {}, int64_t wanted = 16) {
  const SizeRelations relations(inputs_of(dims));
  const auto sizes = relations.sizes(given, [&](const std::string&, SizeRelations::Range range) {
    return std::clamp(wanted, range.least, range.most);
  });
  return sizes.value_or(Ints(dims.size(), -1));
}

constexpr int64_t kNone = INT64_MAX;

}  // namespace

TEST_CASE("size relations: half") {
  const std::vector<Dim> half{{4, 128, "2*s17"}, {2, 64, "s17"}};
  for (int64_t x = 0; x <= 140; ++x)
    for (int64_t y = 0; y <= 70; ++y) CHECK((refusal(half, {x, y}) == "") == (x == 2 * y && y <= 64));
  CHECK(refusal(half, {8, 3}) == "expected size 2*s17 = 6 at dimension 0, got 8, where s17 = 3 is dimension 0 of y");
  CHECK(refusal(half, {130, 65}) == "expected size <= 64 at dimension 0, got 65");
}

TEST_CASE("size relations: an offset, a sum and a multiple") {
  CHECK(refusal({{2, 64, "s77"}, {3, 65, "1 + s77"}}, {9, 4}) ==
        "expected size 1 + s77 = 10 at dimension 0, got 4, where s77 = 9 is dimension 0 of x");
  CHECK(refusal({{2, 64, "s77"}, {3, 65, "1 + s77"}}, {1, 2}) == "");
  const std::vector<Dim> cat{{2, kNone, "s97"}, {2, kNone, "s52"}, {4, kNone, "s52 + s97"}};
  CHECK(refusal(cat, {30, 5, 8}) ==
        "expected size s52 + s97 = 35 at dimension 0, got 8, where s52 = 5 is dimension 0 "
        "of y, and s97 = 30 is dimension 0 of x");
  CHECK(refusal(cat, {30, 5, 35}) == "");
  CHECK(refusal({{2992, kNone, "1496*s81"}}, {3000}) ==
        "expected size 1496*s81 at dimension 0 for a whole number s81, got 3000");
  for (const int64_t n : {0, 1496, 2992, 4488}) CHECK(refusal({{2992, kNone, "1496*s81"}}, {n}) == "");
  // The same expression twice.
  CHECK(refusal({{4, 128, "2*s17"}, {4, 128, "2*s17"}}, {8, 6}) ==
        "expected size 2*s17 = 8 at dimension 0, got 6, where s17 = 4 as dimension 0 of x is 2*s17 = 8");
}

TEST_CASE("size relations: a recorded minimum of 2 accepts 0 and 1") {
  for (const int64_t n : {0, 1, 2, 8}) CHECK(refusal({{2, 8, "s0"}}, {n}) == "");
  CHECK(refusal({{2, 8, "s0"}}, {9}) == "expected size <= 8 at dimension 0, got 9");
  CHECK(refusal({{3, 8, "s0"}}, {2}) == "expected size >= 3 at dimension 0, got 2");
  CHECK(refusal({{1, 8, "s0"}}, {0}) == "expected size >= 1 at dimension 0, got 0");
  CHECK(refusal({{2, 8, ""}}, {0}) == "");
  // Minima of expressions follow from the symbol's.
  CHECK(refusal({{6, 24, "2*s0"}}, {4}) == "expected size 2*s0 at dimension 0 with s0 >= 3, got 4, so that it is 2");
  CHECK(refusal({{6, 24, "2*s0"}}, {6}) == "");
  CHECK(refusal({{4, 24, "2*s0"}}, {26}) == "expected size <= 24 at dimension 0, got 26");
  // A minimum beyond it is the dimension's own.
  CHECK(refusal({{2, 8, "s0"}, {7, 24, "2 + s0"}}, {3, 5}) == "expected size >= 7 at dimension 0, got 5");
  CHECK(refusal({{2, 8, "s0"}, {1, 7, "s0 - 1"}}, {1, 0}) == "");
  CHECK(refusal({{2, 8, "s0"}, {1, 7, "s0 - 1"}}, {0, 0}) ==
        "expected size s0 - 1 = -1 at dimension 0, got 0, where s0 = 0 is dimension 0 of x");
}

TEST_CASE("size relations: products, squares, quotients, extrema") {
  CHECK(refusal({{2, kNone, "s0"}, {2, kNone, "s1"}, {4, kNone, "s0*s1"}}, {3, 5, 15}) == "");
  CHECK(refusal({{2, kNone, "s0"}, {2, kNone, "s1"}, {4, kNone, "s0*s1"}}, {3, 5, 14}) != "");
  CHECK(refusal({{4, kNone, "s0*s0"}, {2, kNone, "s0"}}, {36, 6}) == "");
  CHECK(refusal({{4, kNone, "s0*s0"}}, {49}) == "");
  CHECK(refusal({{4, kNone, "s0*s0"}}, {48}) == "expected size s0*s0 at dimension 0 for a whole number s0, got 48");
  CHECK(refusal({{4, kNone, "s0*s0"}}, {INT64_MAX}) != "");
  CHECK(refusal({{2, kNone, "s0"}, {1, kNone, "s0 // 2"}}, {7, 3}) == "");
  CHECK(refusal({{2, kNone, "s0"}, {1, kNone, "s0 // 2"}}, {7, 4}) != "");
  CHECK(refusal({{2, kNone, "s0"}, {2, kNone, "s1"}, {2, kNone, "Max(s0, s1)"}}, {7, 4, 7}) == "");
  CHECK(refusal({{2, kNone, "s0"}, {2, kNone, "s1"}, {2, kNone, "Max(s0, s1)"}}, {7, 4, 4}) != "");
  // One after the other: s0 by a dimension, s1 by a sum, s2 by a product.
  const std::vector<Dim> chain{{4, kNone, "s2*s1"}, {4, kNone, "s0 + s1"}, {2, kNone, "s0"}};
  CHECK(refusal(chain, {12, 7, 3}) == "");
  CHECK(refusal(chain, {13, 7, 3}) ==
        "expected size s2*s1 at dimension 0 for a whole number s2, got 13, where s1 = 4 as dimension 0 of y is s0 + s1 "
        "= 7");
  CHECK(refusal(chain, {0, 3, 3}) ==
        "the size s2*s1 at dimension 0 does not tell s2, got 0, where s1 = 0 as dimension 0 of y is s0 + s1 = 3");
}

TEST_CASE("size relations: no size is taken that cannot be checked") {
  // Nothing else has the symbols: any size in the range does, and equal expressions are equal sizes.
  CHECK(refusal({{4, 20, "s0 + s1"}}, {7}) == "");
  CHECK(refusal({{4, 20, "s0 + s1"}}, {21}) == "expected size <= 20 at dimension 0, got 21");
  CHECK(refusal({{4, 20, "s0 + s1"}, {4, 20, "s0 + s1"}}, {7, 7}) == "");
  CHECK(refusal({{4, 20, "s0 + s1"}, {4, 20, "s0 + s1"}}, {7, 8}) ==
        "expected size 7 at dimension 0 as in dimension 0 of x, got 8");
  CHECK(refusal({{2, 20, "s0 // 2"}, {2, 20, "s0 // 2"}}, {3, 4}) != "");
  const std::vector<Dim> both{{4, 20, "s0 + s1"}, {0, 20, "s0 - s1"}};
  CHECK(refusal(both, {7, 3}) ==
        "the package says of the size at dimension 0 only that it is s0 + s1, and no other "
        "dimension tells its symbols, so it cannot be checked");
  const auto violation = SizeRelations(inputs_of(both)).violation(Ints{7, 3}, [](size_t) { return "x"; });
  CHECK(violation->undecidable);
  CHECK(refusal({{2, 20, "std::sqrt(s0)"}, {2, 20, "s0"}}, {2, 4}) != "");
}

TEST_CASE("size relations: ranges of single dimensions") {
  CHECK(least_size({2, 8, "s0"}) == 0);
  CHECK(least_size({3, 8, "s0"}) == 3);
  CHECK(least_size({5, 5, ""}) == 5);
  CHECK(least_size({4, 128, "2*s0"}) == 0);
  CHECK(least_size({3, 65, "1 + s0"}) == 1);
  CHECK(least_size({6, 128, "2*s0"}) == 6);
  CHECK(takes_size({4, 128, "2*s0"}, 8));
  CHECK(takes_size({4, 128, "2*s0"}, 2));
  CHECK(!takes_size({4, 128, "2*s0"}, 7));
  CHECK(!takes_size({4, 128, "2*s0"}, 130));
  const SizeRelations cat(inputs_of({{2, kNone, "s97"}, {2, kNone, "s52"}, {4, kNone, "s52 + s97"}}));
  CHECK(cat.range({2, 0}).least == 0);
  CHECK(cat.takes({2, 0}, 1));
  CHECK(error_from(ErrorCode::kInternal, [&] { cat.range({1, 1}); }) == "dimension 1 of input 1 is fixed");
  CHECK(renamed_symbols("s0*s1 + 2*s0", [](const std::string& name) { return "d" + name; }) == "ds0*ds1 + 2*ds0");
  CHECK(takes_size({5, 5, ""}, 5));
  CHECK(!takes_size({5, 5, ""}, 4));
  CHECK(symbols_of("s0*s1 + 2*s0") == std::vector<std::string>{"s0", "s1"});
  CHECK(symbols_of("f(s0)").empty());
  CHECK(closed_under_sums("s0"));
  CHECK(closed_under_sums("6*s0"));
  CHECK(!closed_under_sums("1 + s0"));
  CHECK(!closed_under_sums("s0*s0"));
  CHECK(!closed_under_sums("s0 + s1"));
  CHECK(!closed_under_sums("s0 // 2"));
}

TEST_CASE("size relations: sizes that somebody makes up agree") {
  CHECK(made({{4, 128, "2*s17"}, {2, 64, "s17"}}) == Ints{32, 16});
  CHECK(made({{4, 128, "2*s17"}, {2, 64, "s17"}}, {{"s17", 5}}) == Ints{10, 5});
  CHECK(made({{4, 128, "2*s17"}, {2, 64, "s17"}}, {{"2*s17", 8}}) == Ints{8, 4});
  CHECK(made({{4, 128, "2*s17"}, {2, 64, "s17"}}, {{"2*s17", 7}})[0] == -1);
  CHECK(made({{2, 64, "s0"}}, {{"s0", 100}}) == Ints{100});  // as it is given
  CHECK(made({{2, kNone, "s0"}, {2, kNone, "s1"}, {4, kNone, "s0 + s1"}}) == Ints{16, 16, 32});
  // A narrow range of an expression moves its symbol.
  CHECK(made({{2, kNone, "s0"}, {1, 9, "s0 - 40"}})[1] >= 1);
  CHECK(made({{2, kNone, "s0"}, {4, 8, "4*s0"}})[1] <= 8);
  CHECK(made({{2, kNone, "s0"}, {4, 8, "4*s0"}})[1] == 4 * made({{2, kNone, "s0"}, {4, 8, "4*s0"}})[0]);
  CHECK(made({{2, kNone, "s0"}, {100, 200, "s0 // 3"}})[1] >= 100);
  CHECK(made({{2, 8, "s0"}, {100, 200, "2*s0"}})[0] == -1);
}

// Random systems over small ranges, against a search of all values of all symbols.
TEST_CASE("size relations: random systems against a search") {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  using Value = std::function<int64_t(const Ints&)>;
  struct Form {
    std::string text;
    Value value;
    bool tells = true;  // its one unknown symbol
  };
  const auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); };
  int decided = 0, undecided = 0;
  std::set<std::string> seen;
  for (int draw = 0; draw < 1500; ++draw) {
    const size_t count = 1 + static_cast<size_t>(below(3));
    std::vector<Ints> ranges;
    for (size_t k = 0; k < count; ++k) {
      const int64_t least = std::vector<int64_t>{2, 2, 2, 1, 3}[static_cast<size_t>(below(5))];
      ranges.push_back({least, least + 2 + below(3)});
    }
    const auto form = [&]() -> Form {
      const auto k = static_cast<size_t>(below(static_cast<int>(count))),
                 l = static_cast<size_t>(below(static_cast<int>(count)));
      const std::string a = "s" + std::to_string(k), b = "s" + std::to_string(l);
      const int64_t c = 2 + below(3), d = 1 + below(3);
      const std::string ct = std::to_string(c), dt = std::to_string(d);
      switch (below(12)) {
        case 0:
        case 1:
        case 2:
          return {a, [=](const Ints& s) { return s[k]; }};
        case 3:
          return {ct + "*" + a, [=](const Ints& s) { return c * s[k]; }};
        case 4:
          return {dt + " + " + a, [=](const Ints& s) { return d + s[k]; }};
        case 5:
          return {dt + " + " + ct + "*" + a, [=](const Ints& s) { return d + c * s[k]; }};
        case 6:
          return {a + " + " + b, [=](const Ints& s) { return s[k] + s[l]; }};
        case 7:
          return {a + "*" + b, [=](const Ints& s) { return s[k] * s[l]; }};
        case 8:
          return {"c10::div_floor_integer(static_cast<int64_t>(" + a + "), static_cast<int64_t>(" + ct + "L))",
                  [=](const Ints& s) { return floor_div(s[k], c); }, false};
        case 9:
          return {"Max(" + a + ", " + b + ")", [=](const Ints& s) { return std::max(s[k], s[l]); }, false};
        case 10:
          return {a + "*" + a + " + " + b, [=](const Ints& s) { return s[k] * s[k] + s[l]; }};
        default:
          return {"9 - " + a, [=](const Ints& s) { return 9 - s[k]; }};
      }
    };
    const auto each = [&](const std::vector<Ints>& within, const std::function<void(const Ints&)>& visit) {
      Ints s(count);
      const std::function<void(size_t)> at = [&](size_t k) {
        if (k == count) return visit(s);
        for (s[k] = within[k][0]; s[k] <= within[k][1]; ++s[k]) at(k + 1);
      };
      at(0);
    };
    std::vector<Form> forms;
    std::vector<Dim> dims;
    std::vector<bool> plain(count);
    const int places = 1 + below(3);
    for (int i = 0; i < places; ++i) {
      forms.push_back(form());
      Dim dim{INT64_MAX, 0, forms.back().text};
      each(ranges, [&](const Ints& s) {
        dim.min = std::min(dim.min, forms.back().value(s));
        dim.max = std::max(dim.max, forms.back().value(s));
      });
      if (dim.is_static()) dim.max = dim.min + 1;
      dims.push_back(dim);
      for (size_t k = 0; k < count; ++k) plain[k] = plain[k] || forms.back().text == "s" + std::to_string(k);
    }
    std::string all;
    for (const Dim& dim : dims) all += dim.symbol + "; ";
    CAPTURE(all);
    seen.insert(all);
    // Sizes that are certainly right: symbols in their ranges, and 0 and 1 where 2 is recorded. Sizes that may be
    // right: the package does not say the range of a symbol that is no dimension.
    std::set<Ints> right, possible;
    const auto sizes_of = [&](const Ints& s) {
      Ints sizes;
      for (const Form& each_form : forms) sizes.push_back(each_form.value(s));
      return sizes;
    };
    std::vector<Ints> accepted = ranges, free = ranges;
    for (size_t k = 0; k < count; ++k) {
      if (ranges[k][0] == 2) accepted[k][0] = 0;
      free[k] = plain[k] ? accepted[k] : Ints{0, 40};
    }
    const auto fits = [&](const Ints& sizes) {
      for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] < 0 || sizes[i] > dims[i].max) return false;
      return true;
    };
    each(ranges, [&](const Ints& s) { right.insert(sizes_of(s)); });
    each(accepted, [&](const Ints& s) {
      if (fits(sizes_of(s))) right.insert(sizes_of(s));
    });
    each(free, [&](const Ints& s) {
      if (fits(sizes_of(s))) possible.insert(sizes_of(s));
    });
    // Whether each symbol follows from the sizes.
    std::set<std::string> told, used;
    for (int round = 0; round < 4; ++round)
      for (const Form& each_form : forms) {
        std::vector<std::string> unknown;
        for (const std::string& symbol : symbols_of(each_form.text)) {
          used.insert(symbol);
          if (!told.contains(symbol)) unknown.push_back(symbol);
        }
        if (each_form.tells && unknown.size() == 1) told.insert(unknown[0]);
      }
    const bool all_told = told == used;
    const SizeRelations relations(inputs_of(dims));
    const auto label = [](size_t) { return std::string("x"); };
    Ints sizes(dims.size());
    const std::function<void(size_t)> at = [&](size_t i) {
      if (i < sizes.size()) {
        for (sizes[i] = 0; sizes[i] <= std::min<int64_t>(dims[i].max + 1, 24); ++sizes[i]) at(i + 1);
        return;
      }
      const auto violation = relations.violation(sizes, label);
      REQUIRE(relations.agrees(sizes) == !violation);
      // An expression all alone is a symbol of its own.
      if (!violation && dims.size() > 1 && !possible.contains(sizes)) {
        bool lone = false;
        for (size_t k = 0; k < dims.size(); ++k)
          for (const std::string& symbol : symbols_of(dims[k].symbol)) {
            bool elsewhere = false;
            for (const Dim& other : dims)
              for (const std::string& name : symbols_of(other.symbol))
                elsewhere = elsewhere || (other.symbol != dims[k].symbol && name == symbol);
            lone = lone || !elsewhere;
          }
        CHECK(lone);
      }
      if (violation && !violation->undecidable && all_told) CHECK_FALSE(right.contains(sizes));
    };
    at(0);
    (all_told ? decided : undecided)++;
    // Sizes that are made up agree.
    const auto found = relations.sizes({}, [&](const std::string&, SizeRelations::Range range) {
      return std::clamp<int64_t>(3, range.least, range.most);
    });
    REQUIRE(found);
    const auto violation = relations.violation(*found, label);
    CHECK((!violation || violation->undecidable));
  }
  CHECK(decided > 1000);
  CHECK(undecided > 50);
  CHECK(seen.size() > 900);
}

// agrees() computes a sum at once where no step can overflow, and else by its instructions.
TEST_CASE("size relations: sums with symbols on both sides of where a step may overflow") {
  std::mt19937_64 random(12);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  int small = 0, large = 0, overflows = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    const int64_t f = 1 + below(5), c = below(4), limit = INT64_MAX / (f + 2);
    const int64_t s =
        draw % 2 ? below(1000) : limit - 4 + below(8) + (draw % 4 ? 0 : below(static_cast<uint64_t>(limit)));
    const int64_t t = draw % 3 ? below(1000) : limit - 4 + below(8);
    const std::string sum = std::to_string(f) + "*s + t + " + std::to_string(c);
    const std::vector<Dim> dims{{2, kNone, "s"}, {2, kNone, "t"}, {2, kNone, sum}};
    const __int128 exact = static_cast<__int128>(f) * s + t + c;
    const bool fits = exact <= INT64_MAX;
    const int64_t size = fits ? static_cast<int64_t>(exact) : INT64_MAX;
    CAPTURE(sum);
    CAPTURE(s);
    CAPTURE(t);
    const bool known = s >= 0 && t >= 0;
    REQUIRE((refusal(dims, {s, t, size}) == "") == (known && fits && size >= 0));
    if (size > 0) REQUIRE(refusal(dims, {s, t, size - 1}) != "");
    (!fits ? overflows : s > limit || t > limit ? large : small)++;
  }
  CHECK(std::min({small, large, overflows}) > 100);
}
