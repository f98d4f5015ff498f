// TimerQueue: fires alarms at set times, on its own thread. Alarms are in a heap, so that many of them cost little.
// Thread-safe. Objects with alarms take the time from it, so that a test can move the time of all of them.
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
  using Now = Clock::time_point (*)() noexcept;
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
    Clock::time_point now() const noexcept { return now_(); }
    // Called when the alarm fires. Must be brief. May set the alarm again.
    virtual void ring() noexcept = 0;
    // Waits while ring() runs. Afterwards the alarm does not fire.
    void stop() noexcept;

   private:
    friend class TimerQueue;
    TimerQueue& clock_;
    const Now now_;  // a copy, because the queue's cache line changes often
    Clock::time_point time_ SCONCE_GUARDED_BY(clock_.mutex_) = kNever;
    size_t place_ SCONCE_GUARDED_BY(clock_.mutex_) = kNowhere;  // index in the heap
    bool counted_ SCONCE_GUARDED_BY(clock_.mutex_) = true;      // until it is stopped
  };

  TimerQueue() : now_(Clock::now), thread_([this] { loop(); }) {}
  // Without a thread: alarms fire in poll(). For tests, which set the time that `now` returns.
  explicit TimerQueue(Now now) : now_(now) {}
  ~TimerQueue();  // all alarms must be destroyed

  Clock::time_point now() const noexcept { return now_(); }
  // Fires the alarms that are due, and those that they set to a time that is due.
  void poll() noexcept;

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
  // The first alarm, if it is due, else null. The caller calls ring() without the mutex, then rang().
  Alarm* take_due() noexcept SCONCE_REQUIRES(mutex_);
  void rang() noexcept SCONCE_REQUIRES(mutex_);

  const Now now_;
  Mutex mutex_;
  ConditionVariable changed_, rung_;
  std::vector<Alarm*> heap_ SCONCE_GUARDED_BY(mutex_);  // earliest first; with capacity for all alarms
  size_t alarms_ SCONCE_GUARDED_BY(mutex_) = 0;
  const Alarm* ringing_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, because it uses the other members; none with poll()
};

}  // namespace sconce::server
