// CallThreads: the threads that take events of calls from gRPC's completion queue.
//
// While several threads wait at the queue, gRPC wakes another one for each event. So one thread, the leader, does the
// work alone as long as it can: it looks for the next event before it sleeps (busy_poll.h). Others help
//   - while the leader has found events without a pause for a millisecond;
//   - if steps take long, because the model runs within them: before a step that is expected to;
//   - after a step that was not: one of those that sleep looks each millisecond whether all others are held up.
// A helper leaves once it mostly waits, unless the leader is held up.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/grpc/boundary.h"

namespace sconce::server {

// What is at the queue: its pointer is gRPC's tag.
class CallEvent {
 public:
  virtual void happened(bool ok) noexcept = 0;

 protected:
  ~CallEvent() = default;
};

class CallThreads {
 public:
  using Clock = std::chrono::steady_clock;

  CallThreads(grpc::CompletionQueue& queue, GrpcHost& host, std::chrono::nanoseconds busy_poll);
  CallThreads(const CallThreads&) = delete;
  ~CallThreads() { stop(); }

  void start();  // std::system_error
  // After the queue was shut down: takes its last events, and ends.
  void stop() noexcept;
  // A call waits for another thread (1), and waits no more (-1). Meanwhile the leader does not look for events in vain.
  void waits(int change) noexcept { waiting_.fetch_add(change, std::memory_order_relaxed); }

 private:
  using Next = grpc::CompletionQueue::NextStatus;
  struct Poll;

  void lead() noexcept;
  void follow() noexcept;
  void help() noexcept;
  void step(Poll& poll) noexcept;
  Next next(Poll& poll, Clock::time_point until) noexcept;
  bool wait_for_call() noexcept;
  bool look() noexcept SCONCE_REQUIRES(mutex_);
  void call_one() noexcept;
  void wake_watch() noexcept;

  grpc::CompletionQueue& queue_;
  GrpcHost& host_;
  const std::chrono::nanoseconds busy_poll_;
  const int most_;
  std::atomic<int> waiting_{0};
  std::atomic<int> active_{1}, working_{0};  // threads at the queue; of these, within a step
  std::atomic<bool> leader_works_{false}, awake_{false};
  std::atomic<uint64_t> steps_{0};

  Mutex mutex_;
  ConditionVariable wake_;
  int called_ SCONCE_GUARDED_BY(mutex_) = 0;        // helpers that have not come yet
  bool watched_ SCONCE_GUARDED_BY(mutex_) = false;  // one of those that sleep looks
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  uint64_t seen_steps_ SCONCE_GUARDED_BY(mutex_) = 0;
  int quiet_looks_ SCONCE_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace sconce::server
