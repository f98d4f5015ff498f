// Batcher: the queue in front of a model's replicas. Requests that wait when a replica becomes free, and fit together,
// share its next run; a batch grows until the run starts.
//
// There are as many permits as replicas: a thread that holds one may run. Requests arrive through a lock-free stack;
// the queue behind it is one thread's at a time. A thread that brings a request and finds another in there leaves it to
// that one, so that no request waits for another one's thread. A batch of one runs in place. Where a batch fails, its
// halves run again, and theirs, so that one bad request costs the others time but no answer. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/base/alarm_clock.h"
#include "server/batching/batch_pace.h"
#include "server/batching/batch_tensors.h"
#include "server/batching/inline_policy.h"
#include "server/batching/request_queue.h"

namespace sconce::server {

class Batcher final : private AlarmClock::Alarm {
 public:
  using Clock = QueuedRequest::Clock;
  using Submit = std::function<void(RunRequest&)>;  // Model::submit

  // name: of the model, for errors. inline_policy: is told what runs took.
  Batcher(std::string name, BatchPolicy policy, Submit submit, AlarmClock& clock, InlinePolicy& inline_policy,
          int64_t replicas);
  // Waits for runs to let go of it. No request is left.
  ~Batcher() override;

  const BatchPolicy& policy() const noexcept { return policy_; }

  // A permit for a run of the caller's own, if one is free.
  bool acquire_permit() noexcept;
  void release_permit() noexcept;

  // Queues the request. kQueueFull: nothing happens to it.
  void submit(QueuedRequest& request);
  // True: it was still waiting, and finished() will not be called.
  bool cancel(QueuedRequest& request) noexcept;
  int64_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Makes room for so many replicas. Takes memory; set_replicas(), of no more than that, does not.
  void reserve(int64_t replicas);
  void set_replicas(int64_t replicas) noexcept;

 private:
  class Execution;
  // What is one thread's at a time. Leaving costs no system call unless somebody waits.
  class Section {
   public:
    bool try_enter() noexcept {
      int free = kFree;
      return state_.compare_exchange_strong(free, kInside);
    }
    void enter() noexcept {
      if (try_enter()) return;
      while (state_.exchange(kAwaited) != kFree) state_.wait(kAwaited);
    }
    void leave() noexcept {
      if (state_.exchange(kFree) == kAwaited) state_.notify_one();
    }

   private:
    static constexpr int kFree = 0, kInside = 1, kAwaited = 2;
    std::atomic<int> state_{kFree};
  };

  void ring() noexcept override;
  // Starts runs for requests that wait: here, or in the thread that is at it.
  void attend() noexcept;
  void look() noexcept;
  // In the section.
  void drain() noexcept;
  Clock::time_point next_due() const noexcept;
  Execution* next_run() noexcept;
  void wake_at(Clock::time_point time) noexcept;
  void finish_late(QueuedRequest* late, Clock::time_point now) noexcept;

  // For executions.
  void start(Execution& execution) noexcept;
  void end(Execution& execution, std::chrono::nanoseconds time) noexcept;

  const std::string name_;
  const BatchPolicy policy_;
  const Submit submit_;
  InlinePolicy& inline_policy_;

  alignas(64) std::atomic<QueuedRequest*> arrivals_{nullptr};  // newest first
  std::atomic<int64_t> waiting_{0};                            // not yet part of a run
  std::atomic<bool> again_{false};                             // who is in the section is to look again
  std::atomic<Clock::rep> alarm_at_{INT64_MAX};                // when it rings at the latest

  alignas(64) std::atomic<int64_t> free_;  // permits; below zero after replicas were removed
  std::atomic<int64_t> launched_{0};       // executions on their way to a replica
  std::atomic<int64_t> out_{0};            // executions that are not idle
  Section section_;
  RequestQueue queue_;
  BatchPace pace_;
  std::vector<std::unique_ptr<Execution>> executions_;
  std::vector<Execution*> idle_;
  int64_t replicas_;
};

}  // namespace sconce::server
