// AdminAlarm: an alarm whose work takes long, or sends requests to other servers. The work runs on a thread of
// AdminThreads.
#pragma once

#include <chrono>

#include "server/rollout/work/admin_threads.h"
#include "server/support/timer_queue.h"

namespace sconce::server::rollout {

class AdminAlarm : public TimerQueue::Alarm {
 protected:
  // The threads are stopped before the object is destroyed. again: retry interval if no thread is available, or the
  // work throws.
  AdminAlarm(TimerQueue& clock, AdminThreads& threads, std::chrono::milliseconds again)
      : Alarm(clock), threads_(threads), again_(again) {}
  // The work of the alarm. Sets the alarm again if needed. May run twice in parallel.
  virtual void work() = 0;

 private:
  void ring() noexcept final;

  AdminThreads& threads_;
  const std::chrono::milliseconds again_;
};

}  // namespace sconce::server::rollout
