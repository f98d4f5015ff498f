// TimerQueue: fires alarms at set times, on its own thread. Alarms are in a heap, so that many of them cost little.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server {

class TimerQueue {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  class Alarm {
   public:
    explicit Alarm(TimerQueue& clock);  // initially kNever; std::bad_alloc
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    virtual ~Alarm();  // call stop() first
    // Fires at this time or earlier: the earliest time set since the alarm last fired counts.
    void set(Clock::time_point time) noexcept;

   protected:
    // Called when the alarm fires. Must be brief. May set the alarm again.
    virtual void ring() noexcept = 0;
    // Waits while ring() runs. Afterwards the alarm does not fire.
    void stop() noexcept;

   private:
    friend class TimerQueue;
    TimerQueue& clock_;
    Clock::time_point time_ SCONCE_GUARDED_BY(clock_.mutex_) = kNever;
    size_t place_ SCONCE_GUARDED_BY(clock_.mutex_) = kNowhere;  // index in the heap
    bool counted_ SCONCE_GUARDED_BY(clock_.mutex_) = true;      // until it is stopped
  };

  TimerQueue() : thread_([this] { loop(); }) {}
  ~TimerQueue();  // all alarms must be destroyed

 private:
  static constexpr size_t kNowhere = SIZE_MAX;

  void loop() noexcept;
  // Members of an alarm of this queue. The analysis cannot know that the alarm's clock_ is this object.
  Clock::time_point& time_of(Alarm& alarm) SCONCE_REQUIRES(mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return alarm.time_;
  }
  size_t& place_of(Alarm& alarm) SCONCE_REQUIRES(mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS { return alarm.place_; }
  void place(Alarm& alarm, size_t at) noexcept SCONCE_REQUIRES(mutex_);
  void sift_up(Alarm& alarm, size_t at) noexcept SCONCE_REQUIRES(mutex_);
  void sift_down(Alarm& alarm, size_t at) noexcept SCONCE_REQUIRES(mutex_);
  void remove(Alarm& alarm) noexcept SCONCE_REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_, rung_;
  std::vector<Alarm*> heap_ SCONCE_GUARDED_BY(mutex_);  // earliest first; with capacity for all alarms
  size_t alarms_ SCONCE_GUARDED_BY(mutex_) = 0;
  const Alarm* ringing_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace sconce::server
