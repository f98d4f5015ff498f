// CallThreads: the threads that process call events from gRPC's completion queue.
//
// While several threads wait on the queue, gRPC wakes another one for each event. Therefore one thread, the leader,
// works alone as long as it can: it polls for the next event before it sleeps (busy_poll.h). Helpers join
//   - when the leader has found events without a pause for a millisecond;
//   - when steps take long, because the model runs within them: before a step that is expected to;
//   - after a step that was not: one sleeping thread checks each millisecond whether all others are blocked.
// A helper leaves once it mostly waits, unless the leader is blocked.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/grpc/boundary.h"
#include "server/grpc/library/rpc_inference.h"

namespace sconce::server::rpc {

// An event in the queue; its pointer is gRPC's tag.
class CallEvent {
 public:
  virtual void happened(bool ok) noexcept = 0;

 protected:
  ~CallEvent() = default;
};

class CallThreads final : public WaitCounter {
 public:
  using Clock = std::chrono::steady_clock;

  CallThreads(grpc::CompletionQueue& queue, GrpcHost& host, std::chrono::nanoseconds busy_poll);
  CallThreads(const CallThreads&) = delete;
  ~CallThreads() { stop(); }

  void start();  // std::system_error
  // Call this after the queue was shut down. Processes its last events, and returns.
  void stop() noexcept;
  // While a call waits, the leader does not poll for events in vain.
  void waits(int change) noexcept override { waiting_.fetch_add(change, std::memory_order_relaxed); }

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
  std::atomic<int> active_{1}, working_{0};  // threads at the queue; those of them in a step
  std::atomic<bool> leader_works_{false}, awake_{false};
  std::atomic<uint64_t> steps_{0};

  Mutex mutex_;
  ConditionVariable wake_;
  int called_ SCONCE_GUARDED_BY(mutex_) = 0;        // helpers that have not started yet
  bool watched_ SCONCE_GUARDED_BY(mutex_) = false;  // a sleeping thread checks the others
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  uint64_t seen_steps_ SCONCE_GUARDED_BY(mutex_) = 0;
  int quiet_looks_ SCONCE_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace sconce::server::rpc
