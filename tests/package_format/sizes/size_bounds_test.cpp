#include "package_format/sizes/size_bounds.h"

#include <doctest/doctest.h>

#include <array>

#include "tests/errors.h"

using namespace sconce;

namespace {

SizeBounds of(const AccessBound& bound) { return SizeBounds({{bound}}, {"s0", "s1"}); }

bool holds(const SizeBounds& bounds, int64_t s0, int64_t s1) {
  const std::array<int64_t, 2> values{s0, s1};
  return !bounds.broken(values.data());
}

}  // namespace

TEST_CASE("size bounds: an access at either end of a tensor") {
  const SizeBounds bounds = of({"a", {}, "s0 - 2", "s1"});
  CHECK(!holds(bounds, 1, 4));  // before its beginning
  CHECK(holds(bounds, 2, 4));
  CHECK(holds(bounds, 5, 4));
  CHECK(!holds(bounds, 6, 4));
  const std::array<int64_t, 2> values{6, 4};
  const auto broken = bounds.broken(values.data());
  CHECK(broken->element == 4);
  CHECK(broken->elements == 4);
  CHECK(bounds.text(0) == "s0 - 2 of s1");
  CHECK(bounds.symbols(0) == std::vector<size_t>{1, 0});
}

TEST_CASE("size bounds: an access counts where all its conditions hold") {
  const SizeBounds bounds = of({"a", {"s0 - 3", "5 - s0"}, "s0", "s1"});
  CHECK(holds(bounds, 2, 1));
  CHECK(!holds(bounds, 3, 1));
  CHECK(!holds(bounds, 5, 1));
  CHECK(holds(bounds, 6, 1));
}

TEST_CASE("size bounds: a place that has no value refuses nothing") {
  CHECK(holds(of({"a", {}, "s0 // s1", "s0"}), 4, 0));
  CHECK(holds(of({"a", {}, "s0*s0*s0", "s1"}), INT64_MAX / 2, 1));
  CHECK(holds(of({"a", {"s0 // s1"}, "s0", "s1"}), 4, 0));
}

TEST_CASE("size bounds: a symbol that no size tells") {
  const AccessBound bound{"a", {"u0 - 1"}, "s0", "s1"};
  CHECK(SizeBounds({{bound}}, {"s0", "s1"}).size() == 0);
  CHECK(SizeBounds({{bound}}, {"s0", "s1", "u0"}).size() == 1);
  CHECK(code_of([] { SizeBounds({{{"a", {}, "s0 +", "s1"}}}, {"s0", "s1"}); }) == ErrorCode::kInternal);
}
