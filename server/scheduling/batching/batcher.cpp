#include "server/scheduling/batching/batcher.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "sconce/check.h"
#include "server/scheduling/batching/joined_rows.h"

namespace sconce::server::scheduling {
namespace {

constexpr std::chrono::microseconds kPoll{50};
// Maximum number of requests in one run.
constexpr size_t kMaxRequests = 4096;

OutputRows last_rows_of(std::span<QueuedRequest* const> requests) noexcept {
  OutputRows all = requests.front()->last_rows;
  for (const QueuedRequest* request : requests.subspan(1)) all = joined(all, request->last_rows);
  return all;
}

}  // namespace

// A slot for one run at a time, which is reused.
class Batcher::Execution final : public BatchRun {
 public:
  explicit Execution(Batcher& owner) : batcher(owner) {
    requests.reserve(static_cast<size_t>(std::clamp<int64_t>(owner.policy_.max_rows, 1, kMaxRequests)));
  }

  bool starting() override {
    batcher.start(*this);
    if (requests.empty()) return false;
    if (requests.size() == 1) requests.front()->starting();
    weights = requests.front()->weights;
    step = requests.front()->step;
    device_outputs =
        std::all_of(requests.begin(), requests.end(), [](const auto* each) { return each->device_outputs; });
    last_rows = last_rows_of(requests);
    if (requests.size() == 1) {
      inputs = requests.front()->inputs;
      outputs = requests.front()->outputs;
      gathered = batcher.now();
    }
    return true;
  }

  void preparing() override {
    if (requests.size() == 1) return;
    tensors.gather(requests);
    inputs = tensors.inputs();
    outputs = tensors.outputs();
    gathered = batcher.now();
  }

  void ran() override {
    const Clock::time_point ended = batcher.now();
    if (requests.size() == 1) return requests.front()->ran();
    tensors.split(requests);
    splitting = batcher.now() - ended;
  }

  void finished() noexcept override {
    const std::chrono::nanoseconds time = error == nullptr ? batcher.now() - started : std::chrono::nanoseconds(0);
    batcher.end(*this, time);
  }

  // Passes the run's results to its requests.
  void tell() noexcept {
    const bool batch = requests.size() > 1, good = error == nullptr;
    int64_t rows = 0;
    for (const QueuedRequest* request : requests) rows += request->rows;
    for (QueuedRequest* request : requests) {
      request->info = info;
      request->info.queue = started - request->submitted_ + waited;
      // The last request gets the replica thread's own reference, so that the last client's thread frees the error.
      // end() needs the error only if no run has begun.
      request->error = begun && request == requests.back() ? std::exchange(error, nullptr) : error;
      request->gather = batch ? gathered - started : std::chrono::nanoseconds(0);
      request->split = batch ? splitting : std::chrono::nanoseconds(0);
      request->run_rows = good ? std::exchange(rows, -1) : -1;
      request->finished();  // may destroy the request
    }
  }

  Batcher& batcher;
  BatchTensors tensors;
  Clock::time_point started, gathered;
  std::chrono::nanoseconds splitting{};
  bool begun = false;  // start() was called for this run
};

Batcher::Batcher(std::string name, BatchPolicy policy, Submit submit, TimerQueue& clock, InlinePolicy& inline_policy,
                 int64_t replicas)
    : Alarm(clock),
      name_(std::move(name)),
      policy_(std::move(policy)),
      submit_(std::move(submit)),
      inline_policy_(inline_policy),
      free_(0),
      queue_(policy_),
      replicas_(0) {
  reserve(replicas);
  set_replicas(replicas);
}

Batcher::~Batcher() {
  stop();
  // An execution that is not idle is in its last step, which takes no time.
  while (out_.load() != 0) std::this_thread::sleep_for(kPoll);
}

bool Batcher::acquire_permit() noexcept {
  int64_t free = free_.load(std::memory_order_relaxed);
  while (free > 0) {
    if (free_.compare_exchange_weak(free, free - 1)) return true;
  }
  return false;
}

void Batcher::release_permit() noexcept {
  if (idle_watch_ != nullptr) idle_watch_->ran();
  free_.fetch_add(1);
  if (waiting_.load() != 0) attend();
}

void Batcher::reserve(int64_t replicas) {
  std::vector<std::unique_ptr<Execution>> made;
  // Reserves room for every possible execution, because ending a run must not fail.
  section_.enter();
  const auto have = static_cast<int64_t>(executions_.size());
  section_.leave();
  for (int64_t i = have; i < replicas; ++i) made.push_back(std::make_unique<Execution>(*this));
  std::vector<Execution*> idle;
  idle.reserve(static_cast<size_t>(std::max(have, replicas)));
  std::vector<std::unique_ptr<Execution>> all;
  all.reserve(static_cast<size_t>(std::max(have, replicas)));
  section_.enter();
  idle.assign(idle_.begin(), idle_.end());
  for (auto& execution : made) idle.push_back(execution.get());
  for (auto& execution : executions_) all.push_back(std::move(execution));
  for (auto& execution : made) all.push_back(std::move(execution));
  idle_.swap(idle);
  executions_.swap(all);
  section_.leave();
}

void Batcher::set_replicas(int64_t replicas) noexcept {
  section_.enter();
  free_.fetch_add(replicas - std::exchange(replicas_, replicas));
  section_.leave();
  attend();
}

void Batcher::end_sharing() noexcept {
  section_.enter();
  queue_.end_sharing();
  section_.leave();
  inline_policy_.end_sharing();
  attend();  // requests no longer wait for a batch
}

void Batcher::submit(QueuedRequest& request) {
  // Requests that are about to start do not count as waiting.
  const int64_t room = policy_.queue + std::max<int64_t>(free_.load(std::memory_order_relaxed), 0) +
                       launched_.load(std::memory_order_relaxed);
  if (waiting_.fetch_add(1) >= room && !request.admitted) {
    waiting_.fetch_sub(1);
    SCONCE_FAIL(kQueueFull, "Exceeds maximum queue size: model '", name_, "' has ", policy_.queue, " requests waiting");
  }
  queue_.classify(request, Alarm::now());
  request.given_up_.store(false, std::memory_order_relaxed);
  request.error = nullptr;
  request.run_rows = -1;
  request.gather = request.split = {};
  request.state_ = QueuedRequest::State::kArriving;
  const Clock::time_point deadline = request.deadline_;
  QueuedRequest* head = arrivals_.load(std::memory_order_relaxed);
  do request.next_ = head;
  while (!arrivals_.compare_exchange_weak(head, &request));
  // From here on the request may be finished and destroyed.
  if (deadline != Clock::time_point::max()) wake_at(deadline);
  if (free_.load() > 0) attend();
}

bool Batcher::cancel(QueuedRequest& request) noexcept {
  section_.enter();
  drain();
  const bool found = request.state_ == QueuedRequest::State::kQueued;
  if (found) {
    queue_.remove(request);
    waiting_.fetch_sub(1);
  }
  section_.leave();
  look();
  return found;
}

void Batcher::wake_at(Clock::time_point time) noexcept {
  Clock::rep at = alarm_at_.load();
  while (time.time_since_epoch().count() < at) {
    if (alarm_at_.compare_exchange_weak(at, time.time_since_epoch().count())) return set(time);
  }
}

void Batcher::ring() noexcept {
  alarm_at_.store(INT64_MAX);
  attend();
}

void Batcher::drain() noexcept {
  QueuedRequest* newest = arrivals_.exchange(nullptr);
  QueuedRequest* oldest = nullptr;
  while (newest) {
    QueuedRequest* const next = std::exchange(newest->next_, oldest);
    oldest = std::exchange(newest, next);
  }
  while (oldest) {
    QueuedRequest* const next = oldest->next_;
    queue_.add(*oldest);
    oldest = next;
  }
}

Batcher::Clock::time_point Batcher::next_due() const noexcept {
  return policy_.delay ? queue_.due(*policy_.delay, SIZE_MAX) : queue_.due(pace_.delay(), pace_.enough());
}

// The next execution, if one is due and a replica is free.
Batcher::Execution* Batcher::next_run() noexcept {
  if (static_cast<int64_t>(queue_.size()) <= launched_.load(std::memory_order_relaxed) || idle_.empty() ||
      !acquire_permit()) {
    return nullptr;
  }
  Execution* const execution = idle_.back();
  idle_.pop_back();
  launched_.fetch_add(1);
  out_.fetch_add(1);
  return execution;
}

// The batchers in whose look() this thread is. A run may end before submit_() returns, and its end polls again: the
// look() in progress does that instead, so that many successive runs do not deepen the stack.
class Batcher::Looking {
 public:
  explicit Looking(const Batcher& batcher) noexcept : batcher_(batcher), outer_(std::exchange(innermost_, this)) {}
  ~Looking() { innermost_ = outer_; }
  Looking(const Looking&) = delete;
  static bool at(const Batcher& batcher) noexcept {
    const Looking* one = innermost_;
    while (one && &one->batcher_ != &batcher) one = one->outer_;
    return one != nullptr;
  }

 private:
  static thread_local Looking* innermost_;
  const Batcher& batcher_;
  Looking* const outer_;
};
thread_local constinit Batcher::Looking* Batcher::Looking::innermost_ = nullptr;

void Batcher::attend() noexcept {
  again_.store(true);
  look();
}

void Batcher::look() noexcept {
  if (Looking::at(*this)) return;
  const Looking looking(*this);
  // If a thread sets again_ but cannot enter, the thread in the section sees again_ here after it has left.
  while (again_.load() && section_.try_enter()) {
    again_.store(false);
    const Clock::time_point now = Alarm::now();
    drain();
    QueuedRequest* const late = queue_.take_late(now);
    for (QueuedRequest* request = late; request; request = RequestQueue::next(*request)) waiting_.fetch_sub(1);
    Execution* run = nullptr;
    Clock::time_point wake = queue_.first_deadline();
    if (free_.load() > 0) {
      const Clock::time_point due = next_due();
      if (due <= now) {
        run = next_run();
      } else {
        wake = std::min(wake, due);
      }
    }
    section_.leave();
    if (wake != Clock::time_point::max()) wake_at(wake);
    finish_late(late, now);
    if (!run) continue;
    submit_(*run);
    again_.store(true);  // there may be more work
  }
}

void Batcher::finish_late(QueuedRequest* late, Clock::time_point now) noexcept {
  while (late) {
    QueuedRequest& request = *late;
    late = RequestQueue::next(request);
    request.error = late_error(name_, now - request.submitted_);
    request.finished();
  }
}

// Removes abandoned requests from the list and returns them.
QueuedRequest* Batcher::take_unwanted(std::vector<QueuedRequest*>& requests) noexcept {
  QueuedRequest* unwanted = nullptr;
  std::erase_if(requests, [&](QueuedRequest* request) {
    if (request->wanted()) [[likely]]
      return false;
    request->next_ = std::exchange(unwanted, request);
    return true;
  });
  return unwanted;
}

void Batcher::finish_unwanted(QueuedRequest* unwanted) noexcept {
  while (unwanted) {
    QueuedRequest& request = *std::exchange(unwanted, unwanted->next_);
    request.error = unwanted_error(name_);
    request.finished();
  }
}

void Batcher::start(Execution& execution) noexcept {
  const Clock::time_point now = Alarm::now();
  execution.begun = true;
  execution.started = now;
  section_.enter();
  drain();
  QueuedRequest* const late = queue_.take_late(now);
  for (QueuedRequest* request = late; request; request = RequestQueue::next(*request)) waiting_.fetch_sub(1);
  // Leaves the share of the other executions in transit to them.
  const auto launched = static_cast<size_t>(launched_.fetch_sub(1));
  if (next_due() <= now) queue_.take((queue_.size() + launched - 1) / launched, execution.requests);
  waiting_.fetch_sub(static_cast<int64_t>(execution.requests.size()));
  section_.leave();
  finish_late(late, now);
  finish_unwanted(take_unwanted(execution.requests));
  look();
}

void Batcher::end(Execution& execution, std::chrono::nanoseconds time) noexcept {
  std::vector<QueuedRequest*>& requests = execution.requests;
  const size_t count = requests.size();
  const bool good = count != 0 && execution.error == nullptr, retry = count > 1 && !good;
  int64_t rows = 0;
  for (const QueuedRequest* request : requests) rows += request->rows;
  if (good) inline_policy_.ran(time, count, true, count == 1 ? requests.front()->input_bytes() : 0);
  if (!retry) execution.tell();
  execution.tensors.clear();
  execution.inputs = {};
  execution.outputs = {};
  execution.weights = nullptr;
  execution.step = {};
  execution.info = {};
  execution.waited = {};
  const std::exception_ptr error = std::exchange(execution.error, nullptr);
  const bool begun = std::exchange(execution.begun, false);

  section_.enter();
  drain();
  if (retry) {
    queue_.add_halves(requests);
    waiting_.fetch_add(static_cast<int64_t>(count));
  }
  if (good) pace_.ran(count, rows, time, queue_.size());
  // If no run is possible, waiting requests would wait forever.
  QueuedRequest* lost = begun ? nullptr : queue_.take_all();
  for (QueuedRequest* request = lost; request; request = RequestQueue::next(*request)) waiting_.fetch_sub(1);
  requests.clear();
  idle_.push_back(&execution);
  section_.leave();

  while (lost) {
    QueuedRequest& request = *lost;
    lost = RequestQueue::next(request);
    request.error = error;
    request.finished();
  }
  if (begun) {
    release_permit();
    look();
  } else {
    // look() called submit_(), which called this function; look() itself continues
    launched_.fetch_sub(1);
    free_.fetch_add(1);
  }
  out_.fetch_sub(1);  // the batcher may be destroyed from here on
}

}  // namespace sconce::server::scheduling
