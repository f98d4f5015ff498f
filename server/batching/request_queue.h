// RequestQueue: the requests of one model that wait for a run, and which of them make the next one. Takes no time and
// knows no clock: what time it is, it is told. Not thread-safe; its owner guards it.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "sconce/model.h"
#include "sconce/tensor.h"
#include "server/batching/batch_policy.h"

namespace sconce::server {

// A request that waits. Its owner keeps it and what it refers to until finished() or a cancel that succeeded.
class QueuedRequest {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~QueuedRequest() = default;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int64_t rows = 1;                    // first dimension of all inputs, where the model has batches
  uint64_t priority = 0;               // 0: the default
  std::chrono::nanoseconds timeout{};  // of waiting, as the request asks for; 0: it does not
  bool alone = false;                  // shares no run with others: tensors of it are on a device
  bool device_outputs = false;         // RunRequest::device_outputs; of those that are alone

  // Set by the run.
  RunInfo info;
  std::exception_ptr error;
  std::chrono::nanoseconds gather{}, split{};  // of the run's inputs and outputs; 0 where it ran in place
  int64_t run_rows = -1;                       // of the whole run, in one of its requests; -1 in the others
  size_t input_bytes() const noexcept {
    size_t bytes = 0;
    for (const Tensor& input : inputs) bytes += input.bytes();
    return bytes;
  }
  // Called on the lane after a run of its own that succeeded. May throw.
  virtual void ran() {}
  // Called once, on any thread. Must not block and must not throw.
  virtual void finished() noexcept = 0;

 private:
  friend class RequestQueue;
  friend class Batcher;
  enum class State : int8_t { kElsewhere, kArriving, kQueued };
  QueuedRequest *next_ = nullptr, *previous_ = nullptr;
  Clock::time_point submitted_, deadline_;  // of waiting; max: none
  size_t level_ = 0;
  State state_ = State::kElsewhere;
  bool alone_ = false;  // joins no other
  uint64_t half_ = 0;   // of a run that failed: joins those of the same half only; 0: none
};

class RequestQueue {
 public:
  using Clock = QueuedRequest::Clock;

  explicit RequestQueue(const BatchPolicy& policy);

  bool empty() const noexcept { return size_ == 0; }
  size_t size() const noexcept { return size_; }

  // Sets what the policy says of the request: its level and deadline, and whether it can join others.
  void classify(QueuedRequest& request, Clock::time_point now) const noexcept;
  void add(QueuedRequest& request) noexcept;  // behind those of its level
  // What a run that failed had, as two halves that run before all others, each by itself: so each bad request is found
  // within 2 log2(requests) runs. They have waited for their turn: no deadline of waiting holds for them any more.
  void add_halves(std::span<QueuedRequest* const> run) noexcept;
  void remove(QueuedRequest& request) noexcept;

  // Takes out requests whose deadline has passed, as a list through next(); or moves them behind all others.
  QueuedRequest* take_late(Clock::time_point now) noexcept;
  QueuedRequest* take_all() noexcept;
  Clock::time_point first_deadline() const noexcept { return first_deadline_; }

  // When the next run is due if no other request comes: in the past for "now", max if nobody waits. delay: how long the
  // first one waits. enough: no more requests than this are expected.
  Clock::time_point due(std::chrono::nanoseconds delay, size_t enough) const noexcept;
  // Moves the requests of the next run to `run`, `share` at most; no more than its capacity.
  void take(size_t share, std::vector<QueuedRequest*>& run) noexcept;

  static QueuedRequest* next(const QueuedRequest& request) noexcept { return request.next_; }

 private:
  struct List {
    QueuedRequest *first = nullptr, *last = nullptr;
  };
  template <class F>
  void walk(F&& visit) const noexcept;  // first the first; until visit() returns false
  // Null for a neighbour: first or last of its level.
  void insert(QueuedRequest& request, QueuedRequest* previous, QueuedRequest* next) noexcept;
  bool fits_together(const QueuedRequest& a, const QueuedRequest& b) const noexcept;

  const BatchPolicy& policy_;
  std::vector<List> levels_;  // the most urgent first; behind them those that are late
  size_t size_ = 0;
  uint64_t halves_ = 0;                                          // numbered so far
  Clock::time_point first_deadline_ = Clock::time_point::max();  // nobody's is earlier
};

}  // namespace sconce::server
