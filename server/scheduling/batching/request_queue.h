// RequestQueue: the waiting requests of one model, and the choice of the next batch. Its functions do not block; the
// caller passes the time. Not thread-safe; its owner guards it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/tensor.h"
#include "server/scheduling/batching/batch_policy.h"

namespace sconce::server::scheduling {

// A step of a pipeline's run, for a trace. `begun` is zero if the step did not start.
struct StepTime {
  const std::string* model = nullptr;  // the model's name, which lives as long as the pipeline
  std::chrono::steady_clock::time_point begun{}, ended{};
};

// A waiting request. Its owner keeps it and the objects it refers to until finished() or a successful cancel.
class QueuedRequest {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~QueuedRequest() = default;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int64_t rows = 1;                    // first dimension of all inputs, if the model has batches
  uint64_t priority = 0;               // 0: the default
  std::chrono::nanoseconds timeout{};  // maximum time of waiting that the request asks for; 0: none
  const WeightSet* weights = nullptr;  // a named set, owned by the caller; null: the active set
  SequenceStep step;                   // RunRequest::step; for requests that run alone
  bool alone = false;                  // never batched, because some of its tensors are on a device
  bool device_outputs = false;  // RunRequest::device_outputs, unless another request of the run needs them on the host
  // RunRequest::last_rows, with a part for each row of the request. Other requests of the run may need more of the
  // output: longer lists of the largest, unreduced rows, or, if one needs no last rows, the whole output, at the
  // location that device_outputs says.
  OutputRows last_rows;
  std::vector<StepTime>* step_times = nullptr;  // where a pipeline records them; null: not recorded
  bool admitted = false;                        // continues admitted work, so a full queue accepts it too

  // Results of the run.
  RunInfo info;
  std::exception_ptr error;
  std::chrono::nanoseconds gather{}, split{};  // time for the run's inputs and outputs; 0 if it ran in place
  int64_t run_rows = -1;                       // batch size, in one of the run's requests; -1 in the others
  size_t input_bytes() const noexcept {
    size_t bytes = 0;
    for (const Tensor& input : inputs) bytes += input.bytes();
    return bytes;
  }
  // Marks the request as abandoned. It may be waiting or running; finished() will still be called.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  // An abandoned request is left out of its run when the run starts, and finishes with kCancelled.
  virtual bool wanted() const noexcept { return !given_up_.load(std::memory_order_relaxed); }
  // When its time for waiting ends; max: never. Valid from submit() to finished().
  Clock::time_point deadline() const noexcept { return deadline_; }
  // Called on the replica thread when the request runs alone and its run begins: the last moment to set inputs, weights
  // and the step. May throw.
  virtual void starting() {}
  // Called on the replica thread after a successful run of the request alone. May throw.
  virtual void ran() {}
  // Called once, on any thread. It must not block or throw.
  virtual void finished() noexcept = 0;

 private:
  friend class RequestQueue;
  friend class Batcher;
  enum class State : int8_t { kElsewhere, kArriving, kQueued };
  std::atomic<bool> given_up_{false};
  QueuedRequest *next_ = nullptr, *previous_ = nullptr;
  Clock::time_point submitted_, deadline_;  // of waiting; max: none
  size_t level_ = 0;
  State state_ = State::kElsewhere;
  bool alone_ = false;  // never batched
  uint64_t half_ = 0;   // the half of a failed batch that the request belongs to and runs with; 0: none
};

// The error of a request that was not run, because it waited too long or was abandoned.
std::exception_ptr late_error(const std::string& model, std::chrono::nanoseconds waited);
std::exception_ptr unwanted_error(const std::string& model);

// The deadline for waiting of a request that arrives now; max: never. asked: the request's own limit, 0: none.
QueuedRequest::Clock::time_point waiting_deadline(const BatchPolicy& policy, std::chrono::nanoseconds asked,
                                                  QueuedRequest::Clock::time_point now) noexcept;

class RequestQueue {
 public:
  using Clock = QueuedRequest::Clock;

  explicit RequestQueue(const BatchPolicy& policy);

  bool empty() const noexcept { return size_ == 0; }
  size_t size() const noexcept { return size_; }

  // Applies the policy to the request: sets its level and deadline, and whether it can be batched.
  void classify(QueuedRequest& request, Clock::time_point now) const noexcept;
  void add(QueuedRequest& request) noexcept;  // behind other requests of its level
  // Adds the requests of a failed batch as two halves. Each half runs by itself before all other requests, so each bad
  // request is found within 2 log2(requests) runs. The deadline for waiting no longer applies, because the requests
  // have already been scheduled once.
  void add_halves(std::span<QueuedRequest* const> run) noexcept;
  void remove(QueuedRequest& request) noexcept;
  // From now on each request runs alone, including those already queued.
  void end_sharing() noexcept { shares_ = false; }

  // Removes requests whose deadline has passed and returns them as a list linked by next(), or moves them behind all
  // others.
  QueuedRequest* take_late(Clock::time_point now) noexcept;
  QueuedRequest* take_all() noexcept;
  Clock::time_point first_deadline() const noexcept { return first_deadline_; }

  // When the next run is due if no other request arrives: in the past for "now", max if the queue is empty. delay: how
  // long the first request waits. enough: the expected maximum number of requests.
  Clock::time_point due(std::chrono::nanoseconds delay, size_t enough) const noexcept;
  // Moves the requests of the next batch to `run`: at most `share` requests, and at most the capacity of `run`.
  void take(size_t share, std::vector<QueuedRequest*>& run) noexcept;

  static QueuedRequest* next(const QueuedRequest& request) noexcept { return request.next_; }

 private:
  struct List {
    QueuedRequest *first = nullptr, *last = nullptr;
  };
  template <class F>
  void walk(F&& visit) const noexcept;  // in order, until visit() returns false
  // A null neighbour makes it the first or the last of its level.
  void insert(QueuedRequest& request, QueuedRequest* previous, QueuedRequest* next) noexcept;
  bool fits_together(const QueuedRequest& a, const QueuedRequest& b) const noexcept;

  const BatchPolicy& policy_;
  std::vector<List> levels_;  // most urgent first; the last level is for late requests
  size_t size_ = 0;
  bool shares_ = true;                                           // as far as the policy allows it
  uint64_t halves_ = 0;                                          // numbers assigned so far
  Clock::time_point first_deadline_ = Clock::time_point::max();  // the earliest deadline
};

}  // namespace sconce::server::scheduling
