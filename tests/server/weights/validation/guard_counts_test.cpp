#include "server/weights/validation/guard_counts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sconce::server::weights {

using namespace std::chrono_literals;

namespace {

void show(GuardCounts& counts, std::chrono::nanoseconds time, float value = 1, uint64_t weight_version = 2,
          const char* set = nullptr) {
  Tensor output = Tensor::empty(std::vector<int64_t>{3}, DType::kFloat32);
  std::fill_n(output.data_as<float>(), 3, 1.0F);
  output.data_as<float>()[2] = value;
  const Tensor outputs[] = {Tensor(), output};
  RunInfo info;
  info.weight_version = weight_version;
  if (set) info.set = std::make_shared<const std::string>(set);
  counts.saw({{}, outputs, info, time});
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("guard counts: answers of the new weights count, and no others") {
  const auto counts = std::make_unique<GuardCounts>(2);
  show(*counts, 1ms);
  show(*counts, 1ms, kNan);
  show(*counts, 1ms, kNan, 1);
  show(*counts, 1ms, kNan, 2, "tenant");
  show(*counts, 1ms, std::numeric_limits<float>::infinity());
  const GuardTotals totals = counts->totals(7);
  CHECK(totals.answers == 3);
  CHECK(totals.with_nan == 1);
  CHECK(totals.failures == 7);
}

TEST_CASE("guard counts: the p99 is that of sorted times, at most 7 percent less") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    const auto counts = std::make_unique<GuardCounts>(2);
    std::vector<double> times;
    std::lognormal_distribution<double> spread(8 + round % 10, 1 + round % 3);
    for (int i = 0; i < 500 + round; ++i) {
      const auto ns = static_cast<int64_t>(spread(random)) + 2000;
      times.push_back(static_cast<double>(ns));
      show(*counts, std::chrono::nanoseconds(ns));
    }
    std::sort(times.begin(), times.end());
    // One hundredth of them, rounded down, is slower.
    const double exact = times[times.size() - 1 - times.size() / 100] / 1000;
    const double got = static_cast<double>(counts->totals(0).p99.count());
    CHECK(got <= exact);
    CHECK((got + 1) * 1.07 >= exact);
  }
  const auto counts = std::make_unique<GuardCounts>(2);
  CHECK(counts->totals(0).p99 == 0us);
  show(*counts, -5ns);
  show(*counts, 0ns);
  show(*counts, std::chrono::nanoseconds::max());
  CHECK(counts->totals(0).p99 > 1h);
}

TEST_CASE("guard counts: what passes a bound is said, and a few requests say nothing") {
  const GuardBounds bounds{1min, 0.1, 0.1, 5ms};
  CHECK(passed_bound(bounds, {}).empty());
  CHECK(passed_bound(bounds, {.answers = 10, .failures = 9, .with_nan = 9}).empty());
  CHECK(passed_bound(bounds, {.answers = 18, .failures = 2}).empty());
  CHECK(passed_bound(bounds, {.answers = 17, .failures = 3}) ==
        "3 of 20 requests failed in the model, guard_errors is 0.1");
  CHECK(passed_bound(bounds, {.answers = 20, .with_nan = 2}).empty());
  CHECK(passed_bound(bounds, {.answers = 20, .with_nan = 3}) == "3 of 20 answers have a NaN, guard_nan is 0.1");
  CHECK(passed_bound(bounds, {.answers = 99, .p99 = 9ms}).empty());
  CHECK(passed_bound(bounds, {.answers = 100, .p99 = 5ms}).empty());
  CHECK(passed_bound(bounds, {.answers = 100, .p99 = 5001us}) ==
        "99 of 100 requests take up to 5001 us, guard_p99 is 5000 us");
  // Where none may have a NaN, the first one is enough.
  CHECK(passed_bound({.window = 1s, .errors = 1}, {.answers = 1, .with_nan = 1}) ==
        "1 of 1 answers have a NaN, guard_nan is 0");
  CHECK(
      passed_bound({.window = 1s, .errors = 1, .nan = 1}, {.answers = 100, .failures = 900, .with_nan = 100, .p99 = 1h})
          .empty());
}

}  // namespace sconce::server::weights
