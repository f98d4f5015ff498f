#include "server/scheduling/sequences.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

// Distinct bytes for distinct ids: numbers, texts and the server's own numbers never collide.
struct Key {
  explicit Key(const SequenceId& id) {
    if (id.text.empty()) {
      bytes[0] = id.own ? 'o' : 'n';
      for (size_t i = 0; i < sizeof id.number; ++i) bytes[i + 1] = static_cast<char>(id.number >> (8 * i));
      size = sizeof id.number + 1;
    } else {
      bytes[0] = 't';
      size = id.text.copy(bytes + 1, SequenceId::kMaxText) + 1;
    }
  }
  operator std::string_view() const noexcept { return {bytes, size}; }
  char bytes[SequenceId::kMaxText + 1];
  size_t size;
};

std::string name_of(const SequenceId& id) {
  return id.text.empty() ? std::to_string(id.number) : "'" + excerpt(id.text) + "'";
}

// Whether a step that ended with this error left the state unchanged.
bool changes_nothing(const std::exception_ptr& error) noexcept {
  ErrorCode code = ErrorCode::kInternal;
  succeeds([&] { code = describe_failure(error).code; });
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kDeadlineExceeded || code == ErrorCode::kCancelled ||
         code == ErrorCode::kQueueFull;
}

}  // namespace

// Its members are guarded by the owner's mutex.
struct Sequences::Live {
  std::string key;
  std::shared_ptr<Sequence> place;
  Batcher* queue = nullptr;
  std::string set;                     // its initial weight set; empty: the active one
  uint64_t epoch = 0, last_epoch = 0;  // epoch of the last start; the highest epoch so far
  int64_t steps = 0;                   // number of unfinished steps
  bool ending = false;                 // a step with `end` has arrived
  bool known = true;                   // in the map
  bool idle = false;                   // in the idle list
  bool own = false;                    // of a decode loop, which ends it however long the loop waits for its client
  Clock::time_point since;             // when it became idle
  Live *before = nullptr, *after = nullptr;
};

Sequences::Sequences(std::string name, SequenceHost& host, const BatchPolicy& policy, std::chrono::nanoseconds idle,
                     TimerQueue& clock, InlinePolicy& inline_policy, int64_t replicas)
    : Alarm(clock),
      name_(std::move(name)),
      host_(host),
      idle_(idle),
      policy_(policy),
      clock_(clock),
      inline_policy_(inline_policy) {
  policy_.max_rows = 1;
  policy_.delay = std::chrono::nanoseconds(0);
  // Steps keep their order.
  policy_.priority_levels = 0;
  policy_.reject_late = true;
  reserve(replicas);
}

Sequences::~Sequences() { stop(); }

void Sequences::reserve(int64_t replicas) {
  const MutexLock lock(mutex_);
  for (size_t i = queues_.size(); i < static_cast<size_t>(replicas); ++i) {
    const auto submit = [this, i](BatchRun& run) {
      run.replica = static_cast<int>(i);
      host_.submit(run);
    };
    queues_.push_back(std::make_unique<Batcher>(name_, policy_, submit, clock_, inline_policy_, 1));
    if (idle_watch_) queues_.back()->tell_runs(*idle_watch_);
  }
}

void Sequences::tell_runs(IdleWatch& watch) noexcept {
  const MutexLock lock(mutex_);
  idle_watch_ = &watch;
  for (const auto& queue : queues_) queue->tell_runs(watch);
}

Sequences::Counts Sequences::counts() const {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.live = live_.size();
  return counts;
}

int64_t Sequences::waiting() const noexcept {
  const MutexLock lock(mutex_);
  int64_t sum = 0;
  for (const auto& queue : queues_) sum += queue->waiting();
  return sum;
}

std::shared_ptr<Sequences::Live> Sequences::begin(std::string_view key, bool rows) {
  auto live = std::make_shared<Live>();
  live->key = key;
  const std::exception_ptr problem = exception_of([&] { live->place = host_.make_sequence(rows); });
  if (problem) {
    const Failure failure = describe_failure(problem);
    if (failure.code != ErrorCode::kQueueFull) std::rethrow_exception(problem);
    ++counts_.refused;
    SCONCE_FAIL(kQueueFull, "model '", name_, "': ", failure.message);
  }
  live->queue = queues_.at(live->place->replica()).get();
  live_.emplace(live->key, live);
  return live;
}

void Sequences::enter(const SequenceParameters& asked, std::optional<std::string_view> set, Step& step) {
  const Key key(asked.id);
  const auto found = live_.find(std::string_view(key));
  if (asked.start) {
    std::string named(set.value_or(""));
    step.live = found != live_.end() ? found->second : begin(key, asked.rows);
    step.live->own = asked.id.own;
    step.epoch_before = std::exchange(step.live->epoch, ++step.live->last_epoch);
    step.live->set = std::move(named);
    ++counts_.begun;
  } else {
    SCONCE_CHECK(found != live_.end() && !found->second->ending, kInvalidArgument, "inference request for sequence ",
                 name_of(asked.id), " to model '", name_,
                 "' must specify the START flag on the first request of the sequence");
    const std::string& begun = found->second->set;
    SCONCE_CHECK(!set || *set == begun, kInvalidArgument, "sequence ", name_of(asked.id), " of model '", name_,
                 "' began with ", begun.empty() ? "the active set" : "set '" + begun + "'", ", the request names ",
                 set.value_or("").empty() ? "the active set" : "set '" + excerpt(set.value_or("")) + "'");
    step.live = found->second;
  }
  Live& live = *step.live;
  step.epoch = live.epoch;
  step.starts = asked.start;
  step.ends = asked.end;
  live.ending = asked.end;
  ++live.steps;
  leave_idle(live);
}

void Sequences::submit(QueuedRequest& request, const SequenceParameters& asked, std::optional<std::string_view> set,
                       Step& step) {
  SCONCE_CHECK(asked.id.given(), kInvalidArgument, "inference request to model '", name_,
               "' must specify a non-zero or non-empty correlation ID (sequence_id)");
  {
    const MutexLock lock(mutex_);
    enter(asked, set, step);
  }
  request.step = {.sequence = step.live->place.get(), .begins = step.starts, .epoch = step.epoch};
  request.alone = true;
  const std::exception_ptr problem = exception_of([&] { step.live->queue->submit(request); });
  if (!problem) return;           // the request may be destroyed by now
  std::shared_ptr<Live> dropped;  // destroyed without the mutex
  {
    const MutexLock lock(mutex_);
    Live& live = *step.live;
    --live.steps;
    if (live.epoch == step.epoch) {
      if (step.ends) live.ending = false;
      if (step.starts) live.epoch = step.epoch_before;
      if (live.epoch == 0 && live.known) dropped = forget(live);
    }
    wait_idle(live);
  }
  request.step = {};
  step = {};
  std::rethrow_exception(problem);
}

bool Sequences::cancel(QueuedRequest& request) noexcept {
  Batcher* queue = nullptr;
  {
    const MutexLock lock(mutex_);
    queue = queues_[request.step.sequence->replica()].get();
  }
  return queue->cancel(request);
}

void Sequences::finish(Step& step, const std::exception_ptr& error) noexcept {
  end(step, !error ? Outcome::kDone : changes_nothing(error) ? Outcome::kRefused : Outcome::kFailed);
}

void Sequences::end(Step& step, Outcome outcome) noexcept {
  const bool spoiled = outcome == Outcome::kFailed || (outcome == Outcome::kRefused && step.starts);
  std::shared_ptr<Live> live = std::move(step.live), dropped;  // destroyed without the mutex
  const MutexLock lock(mutex_);
  --live->steps;
  if (live->known && live->epoch == step.epoch && (step.ends || spoiled)) {
    if (!step.ends) ++counts_.failed;
    dropped = forget(*live);
  }
  wait_idle(*live);
}

void Sequences::end_now(const SequenceId& id) noexcept {
  const Key key(id);
  std::shared_ptr<Live> dropped;  // destroyed without the mutex
  const MutexLock lock(mutex_);
  if (const auto found = live_.find(std::string_view(key)); found != live_.end()) dropped = forget(*found->second);
}

std::shared_ptr<Sequences::Live> Sequences::forget(Live& live) noexcept {
  leave_idle(live);
  live.known = false;
  const auto found = live_.find(live.key);
  std::shared_ptr<Live> kept = std::move(found->second);
  live_.erase(found);
  return kept;
}

void Sequences::wait_idle(Live& live) noexcept {
  if (!live.known || live.steps > 0 || live.idle || live.own) return;
  live.idle = true;
  live.since = now();
  live.before = last_idle_;
  live.after = nullptr;
  (last_idle_ ? last_idle_->after : longest_idle_) = &live;
  last_idle_ = &live;
  if (std::exchange(alarm_set_, true)) return;
  set(live.since + idle_);
}

void Sequences::leave_idle(Live& live) noexcept {
  if (!std::exchange(live.idle, false)) return;
  (live.before ? live.before->after : longest_idle_) = live.after;
  (live.after ? live.after->before : last_idle_) = live.before;
  live.before = live.after = nullptr;
}

void Sequences::ring() noexcept {
  const Clock::time_point now = Alarm::now();
  for (;;) {
    std::shared_ptr<Live> over;
    const MutexLock lock(mutex_);
    if (!longest_idle_) {
      alarm_set_ = false;
      return;
    }
    if (longest_idle_->since + idle_ > now) return set(longest_idle_->since + idle_);
    ++counts_.idle;
    over = forget(*longest_idle_);
  }
}

}  // namespace sconce::server::scheduling
