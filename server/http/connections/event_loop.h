// EventLoop: what an I/O thread waits for: descriptors, a time, and calls by other threads.
//
// A connection is registered once, edge-triggered: the kernel says when it becomes readable or writable, and whoever is
// told remembers that until there is nothing more. So a request costs its receive, its send and a share of a wait.
// Asio 1.74 to 1.81 has no such way: it asks the empty socket again after each answer, or registers it anew.
//
// Used by the thread that waits, except call() and wake().
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

namespace sconce::server {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  // Learns what happens to a descriptor. It must live until the events of the wait() during which the descriptor was
  // closed are over.
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

  EventLoop();  // kUnavailable: the process may open no more descriptors
  EventLoop(const EventLoop&) = delete;

  // Tells `watcher` whenever the descriptor becomes readable or writable, and at once if it is, until forget().
  // kUnavailable: no memory in the kernel.
  void watch(int descriptor, Watcher& watcher);
  // Call this before the descriptor is closed. Its end alone may not end the events: a child process that has not
  // reached its exec() has the descriptor, too, and the kernel then goes on to tell of it.
  void forget(int descriptor) noexcept;
  // Tells it once, when the descriptor is readable; call this again for the next time.
  void watch_once(int descriptor, Watcher& watcher);

  // Waits until something happens or `time` comes; a time that is not after `now` does not wait. Returns what happened
  // to descriptors, valid until the next call. It returns early, with nothing, after wake() and call().
  std::span<const Event> wait(Clock::time_point time, Clock::time_point now) noexcept;

  // On any thread: ends the wait that is under way, or else the next one. Makes a system call only if the thread waits.
  void wake() noexcept;
  // On any thread: makes the thread call `work`. If this throws std::bad_alloc, it does not.
  void call(std::function<void()> work);
  // Does the work of call(). What it throws is passed on; the rest is done next time.
  void do_work();

 private:
  void add(int operation, int descriptor, uint32_t events, Watcher* watcher);

  static constexpr int kAwake = 0, kCalled = 1, kAsleep = 2;
  static constexpr size_t kMaxEvents = 128;  // of one wait

  Descriptor epoll_, wakes_;
  std::atomic<int> state_{kAwake};
  std::array<Event, kMaxEvents> events_{};
  std::atomic<bool> has_work_{false};
  Mutex mutex_;
  std::vector<std::function<void()>> work_ SCONCE_GUARDED_BY(mutex_);  // oldest first
  std::vector<std::function<void()>> begun_;                           // newest first
};

}  // namespace sconce::server
