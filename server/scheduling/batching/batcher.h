// Batcher: dynamic batching in front of a model's replicas. When a replica becomes free, the waiting requests that are
// compatible share its next run; a batch grows until the run starts.
//
// There is one permit per replica, and a thread with a permit may run. Requests arrive on a lock-free stack; one thread
// at a time works on the RequestQueue behind it. If another thread does, submit() leaves its request on the stack for
// that thread and does not wait for it. A batch of one runs in place. If a batch fails, its halves run again,
// recursively: a bad request costs the others time, but no request loses its answer. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/scheduling/batching/batch_pace.h"
#include "server/scheduling/batching/batch_tensors.h"
#include "server/scheduling/batching/idle_watch.h"
#include "server/scheduling/batching/inline_policy.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/support/timer_queue.h"

namespace sconce::server::scheduling {

// The run of a batch.
class BatchRun : public RunRequest {
 public:
  // Data that a pipeline reuses between runs in the same slot.
  class Keep {
   public:
    virtual ~Keep() = default;
  };
  std::unique_ptr<Keep> keep;
  std::chrono::nanoseconds waited{};  // in the queues of a pipeline's steps, set by the pipeline
  std::vector<QueuedRequest*> requests;
};

class Batcher final : private TimerQueue::Alarm {
 public:
  using Clock = QueuedRequest::Clock;
  using Submit = std::function<void(BatchRun&)>;  // starts the run: Model::submit, or a pipeline's

  // name: the model's, for errors. inline_policy: receives the times of runs.
  Batcher(std::string name, BatchPolicy policy, Submit submit, TimerQueue& clock, InlinePolicy& inline_policy,
          int64_t replicas);
  // Waits for runs to end. No request may be waiting.
  ~Batcher() override;

  // The initial policy; see end_sharing().
  const BatchPolicy& policy() const noexcept { return policy_; }
  // From now on each request runs alone. Runs in progress are not affected.
  void end_sharing() noexcept;
  // Notifies the watch of every run that ends. Call this before the first request. The watch outlives the batcher.
  void tell_runs(IdleWatch& watch) noexcept { idle_watch_ = &watch; }

  // Takes a permit for a run by the caller, if one is free.
  bool acquire_permit() noexcept;
  void release_permit() noexcept;

  // Queues the request. If this throws kQueueFull, nothing happens to the request.
  void submit(QueuedRequest& request);
  // True: the request was still waiting, and finished() will not be called.
  bool cancel(QueuedRequest& request) noexcept;
  int64_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Allocates room for this number of replicas, so that set_replicas() up to it does not allocate.
  void reserve(int64_t replicas);
  void set_replicas(int64_t replicas) noexcept;

 private:
  class Execution;
  class Looking;
  // Admits one thread at a time. leave() makes a system call only if a thread waits.
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
  // Starts runs for waiting requests, on this thread or on the thread in the section.
  void attend() noexcept;
  void look() noexcept;
  // Call this only in the section.
  void drain() noexcept;
  Clock::time_point next_due() const noexcept;
  Execution* next_run() noexcept;
  void wake_at(Clock::time_point time) noexcept;
  void finish_late(QueuedRequest* late, Clock::time_point now) noexcept;
  QueuedRequest* take_unwanted(std::vector<QueuedRequest*>& requests) noexcept;
  void finish_unwanted(QueuedRequest* unwanted) noexcept;

  void start(Execution& execution) noexcept;
  void end(Execution& execution, std::chrono::nanoseconds time) noexcept;

  const std::string name_;
  const BatchPolicy policy_;
  const Submit submit_;
  InlinePolicy& inline_policy_;
  IdleWatch* idle_watch_ = nullptr;

  alignas(64) std::atomic<QueuedRequest*> arrivals_{nullptr};  // newest first
  std::atomic<int64_t> waiting_{0};                            // requests that are not yet part of a run
  std::atomic<bool> again_{false};                             // the thread in the section must poll again
  std::atomic<Clock::rep> alarm_at_{INT64_MAX};                // the latest time at which the alarm fires

  alignas(64) std::atomic<int64_t> free_;  // permits; negative after replicas were removed while they ran
  std::atomic<int64_t> launched_{0};       // executions in transit to a replica
  std::atomic<int64_t> out_{0};            // executions that are not idle
  Section section_;
  RequestQueue queue_;
  BatchPace pace_;
  std::vector<std::unique_ptr<Execution>> executions_;
  std::vector<Execution*> idle_;
  int64_t replicas_;
};

}  // namespace sconce::server::scheduling
