// AlarmClock: rings alarms at set times, on a thread of its own. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

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
    Clock::time_point time_ = kNever;  // under the clock's mutex
  };

  AlarmClock() : thread_([this] { loop(); }) {}
  ~AlarmClock();  // all alarms must be gone

 private:
  void loop() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_, rung_;
  std::vector<Alarm*> alarms_;
  const Alarm* ringing_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;  // last, because the thread uses the others from its start
};

}  // namespace sconce::server
