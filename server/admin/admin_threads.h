// AdminThreads: requests of the admin port run on threads of their own, so that neither a slow client nor a long fold
// holds up anything else. Thread-safe.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

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

  std::mutex mutex_;  // all below
  std::condition_variable ended_;
  Threads threads_, joinable_;
  bool stopping_ = false;
};

}  // namespace sconce::server
