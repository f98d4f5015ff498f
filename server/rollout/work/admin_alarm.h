// AdminAlarm: an alarm whose work takes long, or asks other servers: it runs on a thread of AdminThreads.
#pragma once

#include <chrono>

#include "server/rollout/work/admin_threads.h"
#include "server/support/timer_queue.h"

namespace sconce::server {

class AdminAlarm : public TimerQueue::Alarm {
 protected:
  // The threads are stopped before it is destroyed. again: when it rings once more if there is no thread for the work,
  // or the work throws.
  AdminAlarm(TimerQueue& clock, AdminThreads& threads, std::chrono::milliseconds again)
      : Alarm(clock), threads_(threads), again_(again) {}
  // What it rings for. Sets the alarm if it shall ring again. May run twice at once.
  virtual void work() = 0;

 private:
  void ring() noexcept final;

  AdminThreads& threads_;
  const std::chrono::milliseconds again_;
};

}  // namespace sconce::server
