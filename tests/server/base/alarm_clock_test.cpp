#include "server/base/alarm_clock.h"

#include <atomic>

#include "doctest/doctest.h"

using namespace sconce;
using namespace sconce::server;
using namespace std::chrono_literals;

namespace {

class Bell final : public AlarmClock::Alarm {
 public:
  using Alarm::Alarm;
  ~Bell() override { stop(); }
  void ring() noexcept override {
    if (again-- > 0) set(AlarmClock::Clock::now());
    ++rings;
    rings.notify_all();
  }
  void wait_for(int count) {
    for (int now = rings; now < count; now = rings) rings.wait(now);
  }
  std::atomic<int> rings{0}, again{0};
};

}  // namespace

TEST_CASE("alarm clock: rings once for each time set, the earliest first") {
  AlarmClock clock;
  Bell a(clock), b(clock);
  a.set(AlarmClock::Clock::now() + 24h);
  b.set(AlarmClock::Clock::now());
  b.wait_for(1);
  CHECK(a.rings == 0);
  a.set(AlarmClock::Clock::now() + 1ms);
  a.set(AlarmClock::Clock::now() + 24h);  // later than what it has
  a.wait_for(1);
  CHECK(b.rings == 1);
}

TEST_CASE("alarm clock: an alarm may set itself again while it rings") {
  AlarmClock clock;
  Bell bell(clock);
  bell.again = 5;
  bell.set(AlarmClock::Clock::now());
  bell.wait_for(6);
  CHECK(bell.rings == 6);
}

TEST_CASE("alarm clock: alarms come and go while others ring") {
  AlarmClock clock;
  Bell lasting(clock);
  lasting.again = 1000;
  lasting.set(AlarmClock::Clock::now());
  for (int i = 0; i < 200; ++i) {
    Bell passing(clock);
    passing.set(AlarmClock::Clock::now());
    if (i % 2) passing.wait_for(1);
  }
  lasting.wait_for(1001);
}
