#include "server/base/alarm_clock.h"

#include <algorithm>

namespace sconce::server {

AlarmClock::Alarm::Alarm(AlarmClock& clock) : clock_(clock) {
  const std::lock_guard lock(clock_.mutex_);
  clock_.alarms_.push_back(this);
}

AlarmClock::Alarm::~Alarm() = default;

void AlarmClock::Alarm::set(Clock::time_point time) noexcept {
  const std::lock_guard lock(clock_.mutex_);
  if (time >= time_) return;
  time_ = time;
  clock_.changed_.notify_one();
}

void AlarmClock::Alarm::stop() noexcept {
  std::unique_lock lock(clock_.mutex_);
  std::erase(clock_.alarms_, this);
  clock_.rung_.wait(lock, [this] { return clock_.ringing_ != this; });
}

AlarmClock::~AlarmClock() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void AlarmClock::loop() noexcept {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = std::min_element(alarms_.begin(), alarms_.end(),
                                       [](const Alarm* a, const Alarm* b) { return a->time_ < b->time_; });
    if (next == alarms_.end() || (*next)->time_ == kNever) {
      changed_.wait(lock);
      continue;
    }
    Alarm& alarm = **next;
    if (Clock::now() < alarm.time_) {
      changed_.wait_until(lock, Clock::time_point(alarm.time_));
      continue;
    }
    alarm.time_ = kNever;
    ringing_ = &alarm;
    lock.unlock();
    alarm.ring();
    lock.lock();
    ringing_ = nullptr;
    rung_.notify_all();
  }
}

}  // namespace sconce::server
