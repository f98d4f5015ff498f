#include "server/support/pace.h"

#include <doctest/doctest.h>

namespace sconce::server {
namespace {

using namespace std::chrono_literals;

const Pace::Time kStart{1h};
const Pace kPace{30s, 64 * 1024};

}  // namespace

TEST_CASE("pace: what does not come within the grace is late, whatever was announced") {
  CHECK(kPace.first(kStart) == kStart + 30s);
  CHECK(kPace.next(kStart + 30s, kStart, 0) == kStart + 30s);
}

TEST_CASE("pace: who keeps the rate is never late") {
  Pace::Time deadline = kPace.first(kStart);
  for (int second = 1; second < 10'000; ++second) {
    REQUIRE(kStart + std::chrono::seconds(second) < deadline);
    deadline = kPace.next(deadline, kStart + std::chrono::seconds(second), 64 * 1024);
  }
}

TEST_CASE("pace: who keeps half of it is late after twice the grace") {
  Pace::Time deadline = kPace.first(kStart);
  int second = 0;
  for (; kStart + std::chrono::seconds(second) < deadline; ++second) {
    deadline = kPace.next(deadline, kStart + std::chrono::seconds(second), 32 * 1024);
  }
  CHECK(second >= 59);
  CHECK(second <= 61);
}

TEST_CASE("pace: a byte now and then keeps nobody") {
  Pace::Time deadline = kPace.first(kStart);
  for (int second = 0; second < 30; ++second) {
    deadline = kPace.next(deadline, kStart + std::chrono::seconds(second), 1);
  }
  CHECK(deadline < kStart + 31s);
}

TEST_CASE("pace: what came quickly gives no right to stall for longer than the grace") {
  const Pace::Time now = kStart + 5s;
  CHECK(kPace.next(kPace.first(kStart), now, uint64_t{200} << 20) == now + 30s);
  CHECK(kPace.next(kPace.first(kStart), now, UINT64_MAX) == now + 30s);
  const Pace none{30s, 0};
  CHECK(none.next(kPace.first(kStart), now, 1000) == now + 30s);
}

}  // namespace sconce::server
