#include "server/http/connections/busy_poll.h"

#include <doctest/doctest.h>

namespace sconce::server::http {

using namespace std::chrono_literals;

TEST_CASE("busy poll: pays where things come faster than the limit") {
  BusyPoll poll(50us);
  BusyPoll::Clock::time_point now{1h};
  CHECK_FALSE(poll.pays());
  int rounds = 0;
  for (; !poll.pays(); ++rounds) poll.came(now += 20us);
  CHECK(rounds > 2);
  CHECK(rounds < 16);
  for (int i = 0; i < 1000; ++i) {
    poll.came(now += 40us);
    CHECK(poll.pays());
  }
  // One short wait does not change the decision, a long one does.
  poll.came(now += 60us);
  CHECK(poll.pays());
  poll.came(now += 1s);
  CHECK_FALSE(poll.pays());
}

TEST_CASE("busy poll: many things at a time count as many") {
  BusyPoll poll(50us);
  BusyPoll::Clock::time_point now{1h};
  for (int i = 0; i < 100; ++i) poll.came(now += 320us, 64);
  CHECK(poll.pays());
  for (int i = 0; i < 100; ++i) poll.came(now += 320us);
  CHECK_FALSE(poll.pays());
}

TEST_CASE("busy poll: looking in vain ends at the limit, and soon is not begun") {
  BusyPoll poll(50us);
  BusyPoll::Clock::time_point now{1h};
  for (int i = 0; i < 100; ++i) poll.came(now += 10us);
  REQUIRE(poll.pays());
  CHECK(poll.again(now + 49us));
  CHECK_FALSE(poll.again(now + 50us));
  CHECK_FALSE(poll.pays());
}

TEST_CASE("busy poll: a limit of 0 never pays") {
  BusyPoll poll(0us);
  BusyPoll::Clock::time_point now{1h};
  for (int i = 0; i < 100; ++i) poll.came(now);
  CHECK_FALSE(poll.pays());
}

}  // namespace sconce::server::http
