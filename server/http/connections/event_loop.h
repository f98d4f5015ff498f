// EventLoop: the events that an I/O thread waits for: descriptors, a time, and calls from other threads.
//
// A connection is registered once, edge-triggered: the kernel reports once when it becomes readable or writable, and
// its watcher remembers that until nothing is left. A request therefore costs its receive, its send and a share of a
// wait. Asio 1.74 to 1.81 does not support this: it polls the empty socket again after each answer, or registers it
// again.
//
// Used by the waiting thread, except call() and wake().
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sconce/mutex.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::http {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  // Receives the events of a descriptor. It must live until the events of the wait() during which the descriptor was
  // closed are handled.
  class Watcher {
   public:
    // events: epoll's bits.
    virtual void ready(uint32_t events) noexcept = 0;

   protected:
    Watcher() = default;
    ~Watcher() = default;
  };
  struct Event {
    Watcher* watcher;
    uint32_t events;
  };

  EventLoop();  // kUnavailable: the process has reached its descriptor limit
  EventLoop(const EventLoop&) = delete;

  // Notifies `watcher` whenever the descriptor becomes readable or writable, and at once if it already is, until
  // forget(). kUnavailable: no memory in the kernel.
  void watch(int descriptor, Watcher& watcher);
  // Call this before the descriptor is closed. Closing it may not end the events: a child process that has not reached
  // its exec() also has the descriptor, and the kernel then continues to report events.
  void forget(int descriptor) noexcept;
  // Notifies the watcher once, when the descriptor is readable; call this again for the next time.
  void watch_once(int descriptor, Watcher& watcher);

  // Waits until an event happens or `time` comes; if `time` is not after `now`, it does not wait. Returns the events of
  // descriptors, valid until the next call. After wake() and call() it returns early, without events.
  std::span<const Event> wait(Clock::time_point time, Clock::time_point now) noexcept;

  // On any thread. Ends the current wait, or else the next one. Makes a system call only if the thread waits.
  void wake() noexcept;
  // On any thread. Makes the loop's thread call `work`. If this throws std::bad_alloc, `work` is not called.
  void call(std::function<void()> work);
  // Executes the work of call(). Its exceptions are passed on; the remaining work is executed at the next call.
  void do_work();
  // After the loop's last turn: destroys the work that was not executed.
  void drop_work() noexcept;

 private:
  void add(int operation, int descriptor, uint32_t events, Watcher* watcher);

  static constexpr int kAwake = 0, kCalled = 1, kAsleep = 2;
  static constexpr size_t kMaxEvents = 128;  // per wait

  Descriptor epoll_, wakes_;
  std::atomic<int> state_{kAwake};
  std::array<Event, kMaxEvents> events_{};
  std::atomic<bool> has_work_{false};
  Mutex mutex_;
  std::vector<std::function<void()>> work_ SCONCE_GUARDED_BY(mutex_);  // oldest first
  std::vector<std::function<void()>> begun_;                           // newest first
};

}  // namespace sconce::server::http
