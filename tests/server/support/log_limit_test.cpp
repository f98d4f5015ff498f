#include "server/support/log_limit.h"

#include <doctest/doctest.h>

namespace sconce::server {
namespace {

LogLimit::Clock::time_point at(int64_t ms) {
  return LogLimit::Clock::time_point(std::chrono::hours(1)) + std::chrono::milliseconds(ms);
}

}  // namespace

TEST_CASE("log limit: some at once, then one now and then, and each tells of those before it") {
  LogLimit limit;
  uint64_t held = 7;
  for (int i = 0; i < LogLimit::kBurst; ++i) {
    CHECK(limit.admit(at(0), held));
    CHECK(held == 0);
  }
  for (int i = 0; i < 5; ++i) CHECK_FALSE(limit.admit(at(0), held));
  const int64_t each = LogLimit::kEach.count();
  CHECK_FALSE(limit.admit(at(each - 1), held));
  CHECK(limit.admit(at(each), held));
  CHECK(held == 6);
  CHECK_FALSE(limit.admit(at(each), held));
  CHECK(limit.all_held() == 7);
}

TEST_CASE("log limit: what was held back is told of though nothing follows, once") {
  LogLimit limit;
  uint64_t held = 0;
  for (int i = 0; i < LogLimit::kBurst + 3; ++i) (void)limit.admit(at(0), held);
  CHECK(limit.take_held(at(0)) == 0);
  const int64_t each = LogLimit::kEach.count();
  CHECK(limit.take_held(at(each)) == 3);
  CHECK(limit.take_held(at(2 * each)) == 0);
  CHECK(limit.all_held() == 3);
}

TEST_CASE("log limit: after a quiet time all of the burst is there again, and no more") {
  LogLimit limit;
  uint64_t held = 0;
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += limit.admit(at(0), held);
  CHECK(admitted == LogLimit::kBurst);
  admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += limit.admit(at(3600'000), held);
  CHECK(admitted == LogLimit::kBurst);
}

}  // namespace sconce::server
