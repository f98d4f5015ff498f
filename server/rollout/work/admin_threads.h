// AdminThreads: runs each request of the admin port on its own thread, so that a slow client or a long fold delays no
// other request. Thread-safe.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <thread>

#include "sconce/mutex.h"

namespace sconce::server::rollout {

class AdminThreads {
 public:
  AdminThreads() = default;
  AdminThreads(const AdminThreads&) = delete;
  AdminThreads& operator=(const AdminThreads&) = delete;
  ~AdminThreads() { stop(); }

  // Runs `work` on a new thread. If that throws, runs `failed`; if that throws too, because memory is short, runs
  // `abandoned`, which must not throw. kUnavailable if too many threads run, or after stop().
  void run(std::function<void()> work, std::function<void(const std::exception_ptr&)> failed,
           std::function<void()> abandoned);

  // Waits for all threads; later calls of run() fail.
  void stop();

 private:
  static constexpr size_t kMost = 128;
  using Threads = std::list<std::thread>;

  Mutex mutex_;
  ConditionVariable ended_;
  Threads threads_ SCONCE_GUARDED_BY(mutex_), joinable_ SCONCE_GUARDED_BY(mutex_);
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
};

}  // namespace sconce::server::rollout
