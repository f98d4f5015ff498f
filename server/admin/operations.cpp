#include "server/admin/operations.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce {

void Operation::end(Outcome outcome, uint64_t generation) noexcept {
  const std::lock_guard lock(mutex_);
  state_ = State::kDone;
  outcome_ = outcome;
  generation_ = generation;
  end_ = Clock::now();
  enter(Phase::kOver);
}

void Operation::end(Failure failure) noexcept {
  const std::lock_guard lock(mutex_);
  state_ = cancelled_ && failure.code == ErrorCode::kCancelled ? State::kCancelled : State::kFailed;
  status_ = failure.status;
  error_ = state_ == State::kCancelled ? std::move(cancel_reason_) : std::move(failure.message);
  end_ = Clock::now();
}

void Operation::advance(int replica, bool ready) noexcept {
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  SCONCE_FAIL(kCancelled, cancel_reason_);
}

void Operation::cancel(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (cancelled_ || state_ != State::kRunning) return;
  cancel_reason_ = std::move(reason);
  cancelled_ = true;
}

Operation::View Operation::view() const {
  const std::lock_guard lock(mutex_);
  const Clock::time_point end = state_ == State::kRunning ? Clock::now() : end_;
  std::vector<Replica> replicas = replicas_;
  for (Replica& one : replicas) {
    if (one.state == Replica::State::kFolding) one.seconds = std::chrono::duration<double>(end - one.begin).count();
  }
  return {state_,
          phase_.load(std::memory_order_relaxed),
          bytes_.load(std::memory_order_relaxed),
          total_.load(std::memory_order_relaxed),
          std::chrono::duration<double>(end - start_).count(),
          outcome_,
          generation_,
          status_,
          error_,
          std::move(replicas)};
}

Operation::State Operation::state() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Operations::run(std::function<void()> work, std::function<void(const std::exception_ptr&)> failed,
                     std::function<void()> abandoned) {
  Threads joinable;
  {
    const std::lock_guard lock(mutex_);
    SCONCE_CHECK(!stopping_, kUnavailable, "the server is shutting down");
    SCONCE_CHECK(threads_.size() < kMost, kUnavailable, "too many admin requests at once: ", threads_.size());
    const auto self = threads_.emplace(threads_.end());
    // The thread cannot reach its end, where it takes the lock, before it stands in the list.
    const auto body = [this, self, work = std::move(work), failed = std::move(failed),
                       abandoned = std::move(abandoned)]() mutable noexcept {
      std::exception_ptr problem;
      try {
        work();
      } catch (...) {
        problem = std::current_exception();
      }
      try {
        if (problem) failed(problem);
      } catch (...) {
        abandoned();
      }
      work = nullptr;
      failed = nullptr;
      abandoned = nullptr;
      problem = nullptr;
      const std::lock_guard done(mutex_);
      joinable_.splice(joinable_.end(), threads_, self);
      ended_.notify_all();
    };
    struct Undo {
      Threads& threads;
      Threads::iterator self;
      bool started = false;
      ~Undo() {
        if (!started) threads.erase(self);
      }
    } undo{threads_, self};
    *self = std::thread(std::move(body));
    undo.started = true;
    joinable.swap(joinable_);
  }
  for (std::thread& thread : joinable) thread.join();
}

std::shared_ptr<Operation> Operations::open(std::string model, int64_t version, std::string label,
                                            std::vector<ReplicaInfo> replicas) {
  const std::lock_guard lock(mutex_);
  size_t over = 0;
  for (const auto& record : records_) over += record->over();
  for (auto it = records_.begin(); over >= kKept && it != records_.end();) {
    if ((*it)->over()) {
      it = records_.erase(it);
      --over;
    } else {
      ++it;
    }
  }
  auto operation =
      std::make_shared<Operation>(++last_id_, std::move(model), version, std::move(label), std::move(replicas));
  // Stopped in the meantime: end as if it had come before.
  if (stopping_) operation->cancel("the server is shutting down");
  records_.push_back(operation);
  return operation;
}

std::shared_ptr<Operation> Operations::find(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& record : records_) {
    if (record->id == id) return record;
  }
  SCONCE_FAIL(kNotFound, "no operation ", id, ", or it has been over for long");
}

std::vector<std::shared_ptr<Operation>> Operations::list() const {
  const std::lock_guard lock(mutex_);
  return {records_.begin(), records_.end()};
}

void Operations::count(const Operation& over) noexcept {
  const Operation::State state = over.state();
  auto& counter = state == Operation::State::kDone        ? counters_.done
                  : state == Operation::State::kCancelled ? counters_.cancelled
                                                          : counters_.failed;
  counter.fetch_add(1, std::memory_order_relaxed);
}

Operations::Claim::Claim(Operations& operations, const void* model, std::string what)
    : operations_(operations), model_(model) {
  const std::lock_guard lock(operations_.mutex_);
  const auto [it, fresh] = operations_.claims_.emplace(model, std::move(what));
  SCONCE_CHECK(fresh, kBusy, "the model is busy: ", it->second);
}

Operations::Claim::~Claim() {
  const std::lock_guard lock(operations_.mutex_);
  operations_.claims_.erase(model_);
}

void Operations::cancel_all(const std::string& reason) {
  for (const auto& operation : list()) operation->cancel(reason);
}

void Operations::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (const auto& record : records_) record->cancel("the server is shutting down");
  ended_.wait(lock, [this] { return threads_.empty(); });
  Threads joinable;
  joinable.swap(joinable_);
  lock.unlock();
  for (std::thread& thread : joinable) thread.join();
}

}  // namespace sconce
