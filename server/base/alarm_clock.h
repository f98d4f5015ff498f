// AlarmClock: rings alarms at set times, on a thread of its own. Thread-safe.
#pragma once

#include <chrono>
#include <thread>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server {

class AlarmClock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  class Alarm {
   public:
    explicit Alarm(AlarmClock& clock);  // kNever
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    virtual ~Alarm();  // call stop() first
    // Rings at this time or earlier: the earliest time set since the last ring counts.
    void set(Clock::time_point time) noexcept;

   protected:
    // Must be brief. May set the alarm again.
    virtual void ring() noexcept = 0;
    // Waits while it rings. It does not ring again.
    void stop() noexcept;

   private:
    friend class AlarmClock;
    AlarmClock& clock_;
    Clock::time_point time_ SCONCE_GUARDED_BY(clock_.mutex_) = kNever;
  };

  AlarmClock() : thread_([this] { loop(); }) {}
  ~AlarmClock();  // all alarms must be gone

 private:
  void loop() noexcept;
  // That of an alarm of this clock: that its clock_ is this one, the analysis cannot know.
  Clock::time_point& time_of(Alarm& alarm) SCONCE_REQUIRES(mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return alarm.time_;
  }

  Mutex mutex_;
  ConditionVariable changed_, rung_;
  std::vector<Alarm*> alarms_ SCONCE_GUARDED_BY(mutex_);
  const Alarm* ringing_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: the others are there when it starts
};

}  // namespace sconce::server
