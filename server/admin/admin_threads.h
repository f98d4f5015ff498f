// AdminThreads: requests of the admin port run on threads of their own, so that neither a slow client nor a long fold
// holds up anything else. Thread-safe.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <thread>

#include "sconce/mutex.h"

namespace sconce::server {

class AdminThreads {
 public:
  AdminThreads() = default;
  AdminThreads(const AdminThreads&) = delete;
  AdminThreads& operator=(const AdminThreads&) = delete;
  ~AdminThreads() { stop(); }

  // Runs `work` on a new thread; if that throws, `failed`; if that throws too, for want of memory, `abandoned`, which
  // must not. kUnavailable if too many run, or after stop().
  void run(std::function<void()> work, std::function<void(const std::exception_ptr&)> failed,
           std::function<void()> abandoned);

  // Waits for all threads, starts no more.
  void stop();

 private:
  static constexpr size_t kMost = 128;
  using Threads = std::list<std::thread>;

  Mutex mutex_;
  ConditionVariable ended_;
  Threads threads_ SCONCE_GUARDED_BY(mutex_), joinable_ SCONCE_GUARDED_BY(mutex_);
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
};

}  // namespace sconce::server
