#include "server/base/alarm_clock.h"

namespace sconce::server {

AlarmClock::Alarm::Alarm(AlarmClock& clock) : clock_(clock) {
  const MutexLock lock(clock_.mutex_);
  clock_.alarms_.push_back(this);
}

AlarmClock::Alarm::~Alarm() = default;

void AlarmClock::Alarm::set(Clock::time_point time) noexcept {
  const MutexLock lock(clock_.mutex_);
  if (time >= time_) return;
  time_ = time;
  clock_.changed_.notify_one();
}

void AlarmClock::Alarm::stop() noexcept {
  const MutexLock lock(clock_.mutex_);
  std::erase(clock_.alarms_, this);
  while (clock_.ringing_ == this) clock_.rung_.wait(clock_.mutex_);
}

AlarmClock::~AlarmClock() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void AlarmClock::loop() noexcept {
  MutexLock lock(mutex_);
  while (!stopping_) {
    Alarm* next = nullptr;
    for (Alarm* alarm : alarms_)
      if (next == nullptr || time_of(*alarm) < time_of(*next)) next = alarm;
    const Clock::time_point time = next == nullptr ? kNever : time_of(*next);
    if (time == kNever) {
      changed_.wait(mutex_);
      continue;
    }
    if (Clock::now() < time) {
      changed_.wait_until(mutex_, time);
      continue;
    }
    time_of(*next) = kNever;
    ringing_ = next;
    lock.unlock();
    next->ring();
    lock.lock();
    ringing_ = nullptr;
    rung_.notify_all();
  }
}

}  // namespace sconce::server
