#include "server/support/timer_queue.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "doctest/doctest.h"

using namespace sconce;
using namespace sconce::server;
using namespace std::chrono_literals;

namespace {

class Bell final : public TimerQueue::Alarm {
 public:
  using Alarm::Alarm;
  ~Bell() override { stop(); }
  void ring() noexcept override {
    if (again-- > 0) set(TimerQueue::Clock::now());
    ++rings;
    rings.notify_all();
  }
  void wait_for(int count) {
    for (int now = rings; now < count; now = rings) rings.wait(now);
  }
  std::atomic<int> rings{0}, again{0};
};

TimerQueue::Clock::time_point still_time{1h};
TimerQueue::Clock::time_point still() noexcept { return still_time; }

}  // namespace

TEST_CASE("alarm clock: without a thread, poll() fires the alarms that are due at the given time") {
  struct Repeated final : TimerQueue::Alarm {
    using Alarm::Alarm;
    ~Repeated() override { stop(); }
    void ring() noexcept override {
      ++rings;
      set(now() + (rings == 1 ? 0s : 10s));
    }
    int rings = 0;
  };
  TimerQueue clock(&still);
  CHECK(clock.now() == still_time);
  Repeated repeated(clock);
  Bell later(clock);
  clock.poll();
  CHECK(repeated.rings == 0);
  repeated.set(still_time + 1s);
  later.set(still_time + 2s);
  still_time += 999ms;
  clock.poll();
  CHECK(repeated.rings == 0);
  still_time += 1ms;
  clock.poll();
  CHECK(repeated.rings == 2);  // the second time was due when it was set
  CHECK(later.rings == 0);
  still_time += 1s;
  clock.poll();
  CHECK(later.rings == 1);
  CHECK(repeated.rings == 2);
  still_time += 9s;
  clock.poll();
  CHECK(repeated.rings == 3);
}

TEST_CASE("alarm clock: rings once for each time set, the earliest first") {
  TimerQueue clock;
  Bell a(clock), b(clock);
  a.set(TimerQueue::Clock::now() + 24h);
  b.set(TimerQueue::Clock::now());
  b.wait_for(1);
  CHECK(a.rings == 0);
  a.set(TimerQueue::Clock::now() + 1ms);
  a.set(TimerQueue::Clock::now() + 24h);  // later than what it has
  a.wait_for(1);
  CHECK(b.rings == 1);
}

TEST_CASE("alarm clock: many alarms ring in the order of their times, and those that stopped do not") {
  struct Ordered final : TimerQueue::Alarm {
    Ordered(TimerQueue& clock, std::vector<int>& order, int number) : Alarm(clock), order(order), number(number) {}
    ~Ordered() override { stop(); }
    void ring() noexcept override { order.push_back(number); }
    std::vector<int>& order;
    const int number;
  };
  struct Gate final : TimerQueue::Alarm {
    using Alarm::Alarm;
    ~Gate() override { stop(); }
    void ring() noexcept override {
      rings = true;
      rings.notify_all();
      open.wait(false);
    }
    std::atomic<bool> rings{false}, open{false};
  };
  constexpr int kAlarms = 1000, kStep = 617;  // without a common divisor: each number comes once
  TimerQueue clock;
  Gate gate(clock);
  const auto past = TimerQueue::Clock::now() - 1h;
  gate.set(past);
  gate.rings.wait(false);
  std::vector<int> order;
  order.reserve(kAlarms);
  std::vector<std::unique_ptr<Ordered>> alarms;
  for (int i = 0; i < kAlarms; ++i) {
    const int number = i * kStep % kAlarms;
    alarms.push_back(std::make_unique<Ordered>(clock, order, number));
    alarms.back()->set(past + std::chrono::milliseconds(number + kAlarms));
    if (i % 2) alarms.back()->set(past + std::chrono::milliseconds(number));  // earlier
  }
  std::vector<int> expected;
  std::vector<std::pair<int, int>> by_time;
  for (int i = 0; i < kAlarms; ++i) {
    const int number = i * kStep % kAlarms;
    if (i % 3 == 0) {
      alarms[static_cast<size_t>(i)].reset();
    } else {
      by_time.emplace_back(number + (i % 2 ? 0 : kAlarms), number);
    }
  }
  std::sort(by_time.begin(), by_time.end());
  for (const auto& [time, number] : by_time) expected.push_back(number);
  Bell last(clock);
  last.set(past + 10s);
  gate.open = true;
  gate.open.notify_all();
  last.wait_for(1);
  CHECK(order == expected);
}

TEST_CASE("alarm clock: an alarm may set itself again while it rings") {
  TimerQueue clock;
  Bell bell(clock);
  bell.again = 5;
  bell.set(TimerQueue::Clock::now());
  bell.wait_for(6);
  CHECK(bell.rings == 6);
}

TEST_CASE("alarm clock: alarms come and go while others ring") {
  TimerQueue clock;
  Bell lasting(clock);
  lasting.again = 1000;
  lasting.set(TimerQueue::Clock::now());
  for (int i = 0; i < 200; ++i) {
    Bell passing(clock);
    passing.set(TimerQueue::Clock::now());
    if (i % 2) passing.wait_for(1);
  }
  lasting.wait_for(1001);
}

// AddressSanitizer found it: the time of a wait was read again after it, from an alarm that was gone.
TEST_CASE("alarm clock: the alarm for which the thread waits goes") {
  TimerQueue clock;
  for (int i = 0; i < 100; ++i) {
    auto gone = std::make_unique<Bell>(clock);
    gone->set(TimerQueue::Clock::now() + 1h);
    Bell rings(clock);
    rings.set(TimerQueue::Clock::now());
    rings.wait_for(1);  // the thread then waits for the other alarm
    gone.reset();
    rings.set(TimerQueue::Clock::now());
    rings.wait_for(2);
  }
}
