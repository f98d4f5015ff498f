// RequestQueue: the requests of one model that wait for a run, and the choice of those that make the next one. It never
// waits, and is told the time. Not thread-safe; its owner guards it.
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

namespace sconce::server {

// A step of a pipeline's run, for a trace. `begun` is zero if it did not begin.
struct StepTime {
  const std::string* model = nullptr;  // its name, which lives as long as the pipeline
  std::chrono::steady_clock::time_point begun{}, ended{};
};

// A waiting request. Its owner keeps it and what it refers to until finished() or a successful cancel.
class QueuedRequest {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~QueuedRequest() = default;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int64_t rows = 1;                    // first dimension of all inputs, if the model has batches
  uint64_t priority = 0;               // 0: the default
  std::chrono::nanoseconds timeout{};  // of waiting, as the request asks; 0: it does not
  const WeightSet* weights = nullptr;  // a named set, which the owner keeps; null: the active one
  SequenceStep step;                   // RunRequest::step; for requests that run alone
  bool alone = false;                  // shares no run, because some of its tensors are on a device
  bool device_outputs = false;  // RunRequest::device_outputs, unless another one in the run wants them on the host
  // RunRequest::last_rows, with a part for each of its rows. Others in the run may want more of the output: longer
  // lists of the largest, rows as they are, or, if one wants no last rows, the output whole, where device_outputs says.
  OutputRows last_rows;
  std::vector<StepTime>* step_times = nullptr;  // where a pipeline writes them; null: nobody asks
  bool admitted = false;                        // goes on with what was admitted, so that a full queue takes it too

  // Set by the run.
  RunInfo info;
  std::exception_ptr error;
  std::chrono::nanoseconds gather{}, split{};  // of the run's inputs and outputs; 0 if it ran in place
  int64_t run_rows = -1;                       // rows of the whole run, in one of its requests; -1 in the others
  size_t input_bytes() const noexcept {
    size_t bytes = 0;
    for (const Tensor& input : inputs) bytes += input.bytes();
    return bytes;
  }
  // Says that nobody waits for it any more. It may wait for a run or be in one, and finished() will still be called.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  // A request that nobody wants when its run starts is left out of it, and finishes with kCancelled.
  virtual bool wanted() const noexcept { return !given_up_.load(std::memory_order_relaxed); }
  // When its time for waiting ends; max: never. From submit() to finished().
  Clock::time_point deadline() const noexcept { return deadline_; }
  // Called on the lane when a run of its own begins: the last moment to set inputs, weights and the step. May throw.
  virtual void starting() {}
  // Called on the lane after a successful run of its own. May throw.
  virtual void ran() {}
  // Called once, on any thread. Must not block and must not throw.
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
  bool alone_ = false;  // shares no run
  uint64_t half_ = 0;   // the half of a failed run that it belongs to and runs with; 0: none
};

// Why a request was not run: it waited too long, or nobody wants it.
std::exception_ptr late_error(const std::string& model, std::chrono::nanoseconds waited);
std::exception_ptr unwanted_error(const std::string& model);

// When a request that comes now has waited too long; max: never. asked: the request's own limit, 0: none.
QueuedRequest::Clock::time_point waiting_deadline(const BatchPolicy& policy, std::chrono::nanoseconds asked,
                                                  QueuedRequest::Clock::time_point now) noexcept;

class RequestQueue {
 public:
  using Clock = QueuedRequest::Clock;

  explicit RequestQueue(const BatchPolicy& policy);

  bool empty() const noexcept { return size_ == 0; }
  size_t size() const noexcept { return size_; }

  // Sets what the policy says of the request: its level and deadline, and whether it can share runs.
  void classify(QueuedRequest& request, Clock::time_point now) const noexcept;
  void add(QueuedRequest& request) noexcept;  // after others of its level
  // Adds the requests of a failed run as two halves, each of which runs by itself before all others: so each bad
  // request is found within 2 log2(requests) runs. They had their turn, so the deadline for waiting no longer applies.
  void add_halves(std::span<QueuedRequest* const> run) noexcept;
  void remove(QueuedRequest& request) noexcept;
  // From now on each request makes a run of its own, also those that wait.
  void end_sharing() noexcept { shares_ = false; }

  // Removes requests whose deadline has passed and returns them as a list by next(), or moves them behind all others.
  QueuedRequest* take_late(Clock::time_point now) noexcept;
  QueuedRequest* take_all() noexcept;
  Clock::time_point first_deadline() const noexcept { return first_deadline_; }

  // When the next run is due if no other request comes: in the past for "now", max if nobody waits. delay: how long the
  // first one waits. enough: the most requests that are expected.
  Clock::time_point due(std::chrono::nanoseconds delay, size_t enough) const noexcept;
  // Moves the requests of the next run to `run`: at most `share`, and at most its capacity.
  void take(size_t share, std::vector<QueuedRequest*>& run) noexcept;

  static QueuedRequest* next(const QueuedRequest& request) noexcept { return request.next_; }

 private:
  struct List {
    QueuedRequest *first = nullptr, *last = nullptr;
  };
  template <class F>
  void walk(F&& visit) const noexcept;  // in order, until visit() returns false
  // Null neighbours: it becomes the first or the last of its level.
  void insert(QueuedRequest& request, QueuedRequest* previous, QueuedRequest* next) noexcept;
  bool fits_together(const QueuedRequest& a, const QueuedRequest& b) const noexcept;

  const BatchPolicy& policy_;
  std::vector<List> levels_;  // the most urgent first; the last one is for late requests
  size_t size_ = 0;
  bool shares_ = true;                                           // as far as the policy allows it
  uint64_t halves_ = 0;                                          // numbers given so far
  Clock::time_point first_deadline_ = Clock::time_point::max();  // the earliest deadline
};

}  // namespace sconce::server
