#include "server/rollout/work/operation_log.h"

#include "sconce/check.h"
#include "server/support/enum_name.h"

namespace sconce::server::rollout {
namespace {

constexpr const char* kShutdown = "the server is shutting down";

}  // namespace

const char* state_name(Operation::State state) noexcept {
  return name_of(state, {"running", "done", "failed", "cancelled"});
}

const char* phase_name(Operation::Phase phase) noexcept {
  return name_of(phase, {"starting", "receiving", "folding", "judging", "committing", "over"});
}

void Operation::set_traceparent(std::string field) {
  const MutexLock lock(mutex_);
  traceparent_ = std::move(field);
}

void Operation::enter(Phase phase) noexcept {
  const MutexLock lock(mutex_);
  pass_to(phase);
}

void Operation::pass_to(Phase phase) noexcept {
  const Clock::time_point now = Clock::now();
  if (phase_ != Phase::kOver) spent_[static_cast<size_t>(phase_)] += now - entered_;
  entered_ = now;
  phase_ = phase;
}

void Operation::add_shared(Clock::duration opening, Clock::duration copying) noexcept {
  const MutexLock lock(mutex_);
  opening_ += opening;
  copying_ += copying;
}

void Operation::end(Outcome outcome, uint64_t weight_version) noexcept {
  const MutexLock lock(mutex_);
  state_ = State::kDone;
  outcome_ = outcome;
  weight_version_ = weight_version;
  pass_to(Phase::kOver);
  end_ = entered_;
}

void Operation::tell_stored(bool stored, std::string problem) noexcept {
  const MutexLock lock(mutex_);
  stored_ = stored;
  store_problem_ = std::move(problem);
}

void Operation::tell_golden(std::string verdict) noexcept {
  const MutexLock lock(mutex_);
  golden_ = std::move(verdict);
}

void Operation::end(Failure failure) noexcept {
  const MutexLock lock(mutex_);
  state_ = cancelled_ && failure.code == ErrorCode::kCancelled ? State::kCancelled : State::kFailed;
  status_ = failure.status;
  error_ = state_ == State::kCancelled ? std::move(cancel_reason_) : std::move(failure.message);
  end_ = Clock::now();
}

void Operation::advance(int replica, bool ready) noexcept {
  const MutexLock lock(mutex_);
  for (Replica& one : replicas_) {
    if (one.index != replica) continue;
    const Clock::time_point now = Clock::now();
    if (!ready) one.begin = now;
    one.seconds = std::chrono::duration<double>(now - one.begin).count();
    one.state = ready ? Replica::State::kReady : Replica::State::kFolding;
  }
}

void Operation::check_cancelled() const {
  if (!cancelled_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  SCONCE_FAIL(kCancelled, cancel_reason_);
}

void Operation::follow(FileOptions& options) {
  options.cancel = &cancelled_;
  options.progress = [this, seen = uint64_t{0}](uint64_t done, uint64_t total) mutable {
    expect_bytes(total);
    add_bytes(done - seen);
    seen = done;
  };
}

void Operation::cancel(std::string reason) {
  const MutexLock lock(mutex_);
  if (cancelled_ || state_ != State::kRunning) return;
  cancel_reason_ = std::move(reason);
  cancelled_ = true;
}

Operation::View Operation::view() const {
  const MutexLock lock(mutex_);
  const Clock::time_point end = state_ == State::kRunning ? Clock::now() : end_;
  std::vector<Replica> replicas = replicas_;
  for (Replica& one : replicas) {
    if (one.state == Replica::State::kFolding) one.seconds = std::chrono::duration<double>(end - one.begin).count();
  }
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  std::array<double, kPhases> phase_seconds{};
  for (size_t i = 0; i < kPhases; ++i)
    phase_seconds[i] = seconds(spent_[i] + (i == static_cast<size_t>(phase_) ? end - entered_ : Clock::duration{}));
  return {state_,
          phase_,
          phase_seconds,
          seconds(opening_),
          seconds(copying_),
          bytes_.load(std::memory_order_relaxed),
          total_.load(std::memory_order_relaxed),
          seconds(end - start_),
          seconds(Clock::now() - end),
          outcome_,
          weight_version_,
          stored_,
          store_problem_,
          golden_,
          status_,
          error_,
          std::move(replicas),
          traceparent_};
}

Operation::State Operation::state() const noexcept {
  const MutexLock lock(mutex_);
  return state_;
}

std::shared_ptr<Operation> OperationLog::open(std::string model, int64_t version, std::string label,
                                              std::vector<ReplicaInfo> replicas) {
  const MutexLock lock(mutex_);
  size_t over = 0;
  for (const auto& record : records_) over += record->over();
  for (auto it = records_.begin(); over >= kMaxFinished && it != records_.end();) {
    if ((*it)->over()) {
      it = records_.erase(it);
      --over;
    } else {
      ++it;
    }
  }
  auto operation =
      std::make_shared<Operation>(++last_id_, std::move(model), version, std::move(label), std::move(replicas));
  // stop() was called meanwhile: cancel this operation too.
  if (stopping_) operation->cancel(kShutdown);
  records_.push_back(operation);
  return operation;
}

std::shared_ptr<Operation> OperationLog::find(uint64_t id) const {
  const MutexLock lock(mutex_);
  for (const auto& record : records_) {
    if (record->id == id) return record;
  }
  SCONCE_FAIL(kNotFound, "no operation ", id, ": it never was, or ended long ago");
}

std::vector<std::shared_ptr<Operation>> OperationLog::list() const {
  const MutexLock lock(mutex_);
  return {records_.begin(), records_.end()};
}

void OperationLog::count(const Operation& over) noexcept {
  const Operation::State state = over.state();
  auto& counter = state == Operation::State::kDone        ? counters_.done
                  : state == Operation::State::kCancelled ? counters_.cancelled
                                                          : counters_.failed;
  counter.fetch_add(1, std::memory_order_relaxed);
  if (told_) succeeds([&] { told_(over); });
}

void OperationLog::cancel_all(const std::string& reason) {
  ending_ = true;
  for (const auto& operation : list()) operation->cancel(reason);
}

void OperationLog::stop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  ending_ = true;
  for (const auto& record : records_) record->cancel(kShutdown);
}

}  // namespace sconce::server::rollout
