#include "server/registry/lazy_load/load_queue.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/failure.h"

namespace sconce::server::registry {
namespace {

// Beyond this number of failures, expired ones are removed.
constexpr size_t kMaxFailures = 20'000;

bool is_passing(ErrorCode code) noexcept {
  return code == ErrorCode::kQueueFull || code == ErrorCode::kUnavailable || code == ErrorCode::kCancelled;
}

}  // namespace

bool LoadQueue::Wanted::operator()() const {
  if (demand_.stopping()) return false;
  const MutexLock lock(demand_.mutex_);
  return unit_.first != nullptr || unit_.lock_waiters > 0 || unit_.by_hand;
}

bool LoadQueue::Wanted::is_first_in_line(uint64_t kinds) const {
  const MutexLock lock(demand_.mutex_);
  return demand_.is_first(unit_, kinds);
}

void LoadQueue::Wanted::wait_for_room(uint64_t kinds) const {
  const MutexLock lock(demand_.mutex_);
  unit_.waits_for_room = true;
  unit_.lacks = kinds;
}

LoadQueue::LoadQueue(Loader& loader, size_t threads, Times times)
    : loader_(loader), most_threads_(std::max<size_t>(threads, 1)), times_(std::move(times)) {}

void LoadQueue::stop() noexcept {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_.store(true);
    threads.swap(threads_);
  }
  wake_.notify_all();
  unlocked_.notify_all();
  by_hand_.notify_all();
  for (std::thread& thread : threads) thread.join();
  Waiter* left = nullptr;
  std::deque<std::shared_ptr<void>> kept;
  {
    const MutexLock lock(mutex_);
    queue_.clear();
    line_.clear();
    for (auto& each : units_) {
      Unit& unit = each.second;
      unit.queued = unit.in_line = false;
      if (!unit.by_hand) succeeds([&] { kept.push_back(std::move(unit.loader_data)); });
      while (Waiter* waiter = take_waiters(unit)) {
        Waiter* last = waiter;
        while (last->next != nullptr) last = last->next;
        last->next = left;
        left = waiter;
      }
    }
  }
  std::exception_ptr problem = std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the server is ending"));
  while (left != nullptr) {
    Waiter& waiter = *left;
    left = waiter.next;
    waiter.problem = problem;
    waiter.notify(waiter.context);
  }
}

LoadQueue::Unit& LoadQueue::unit_of(const std::string& name) {
  Unit& unit = units_[name];
  if (unit.name.empty()) unit.name = name;
  return unit;
}

void LoadQueue::ask(const std::string& name, Waiter& waiter, size_t most) {
  const MutexLock lock(mutex_);
  SCONCE_CHECK(!stopping(), kUnavailable, "the server is ending");
  if (const auto known = units_.find(name); known != units_.end()) {
    const Unit& unit = known->second;
    const bool remembered =
        unit.failed && !unit.taken && !unit.queued && times_.now() < unit.failed_at + times_.remember;
    if (remembered) throw Error(unit.code, unit.reason);
    SCONCE_CHECK(unit.waiting < most, kQueueFull, "model '", name, "' is being loaded, and ", most,
                 " requests wait for it already (setting load_queue)");
  } else {
    SCONCE_CHECK(most > 0, kQueueFull, "no request may wait for a model (setting load_queue)");
  }
  Unit& unit = unit_of(name);
  if (!unit.taken && !unit.queued && !unit.in_line) enqueue(unit);
  waiter.problem = nullptr;
  waiter.unit = &unit;
  waiter.next = nullptr;
  waiter.previous = unit.last;
  (unit.last != nullptr ? unit.last->next : unit.first) = &waiter;
  unit.last = &waiter;
  ++unit.waiting;
  ++counts_.waiting;
}

void LoadQueue::enqueue(Unit& unit) {
  queue_.push_back(&unit);
  unit.queued = true;
  if (idle_ < queue_.size() && threads_.size() < most_threads_ && !stopping()) {
    const std::exception_ptr problem = exception_of([this] {
      mutex_.assert_held();
      threads_.emplace_back([this] { run(); });
    });
    if (problem && threads_.empty()) {
      queue_.pop_back();
      unit.queued = false;
      std::rethrow_exception(problem);
    }
  }
  wake_.notify_one();
}

bool LoadQueue::cancel(Waiter& waiter) noexcept {
  std::shared_ptr<void> kept;
  const MutexLock lock(mutex_);
  if (waiter.unit == nullptr) return false;
  Unit& unit = *std::exchange(waiter.unit, nullptr);
  (waiter.previous != nullptr ? waiter.previous->next : unit.first) = waiter.next;
  (waiter.next != nullptr ? waiter.next->previous : unit.last) = waiter.previous;
  waiter.next = waiter.previous = nullptr;
  --unit.waiting;
  --counts_.waiting;
  if (unit.first == nullptr && unit.in_line && !unit.taken) {
    kept = leave_line(unit);
    drop_if_idle(unit);
  }
  return true;
}

void LoadQueue::forget_failure(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto at = units_.find(name);
  if (at == units_.end() || !at->second.failed) return;
  at->second.failed = false;
  --failed_;
  drop_if_idle(at->second);
}

// Takes the list of waiters, which the caller notifies.
LoadQueue::Waiter* LoadQueue::take_waiters(Unit& unit) noexcept {
  for (Waiter* waiter = unit.first; waiter != nullptr; waiter = waiter->next) waiter->unit = nullptr;
  counts_.waiting -= static_cast<int64_t>(std::exchange(unit.waiting, 0));
  unit.last = nullptr;
  return std::exchange(unit.first, nullptr);
}

void LoadQueue::drop_if_idle(Unit& unit) noexcept {
  if (unit.taken || unit.queued || unit.in_line || unit.failed || unit.lock_waiters > 0 || unit.first != nullptr)
    return;
  const auto at = units_.find(unit.name);
  if (at != units_.end()) units_.erase(at);
}

void LoadQueue::drop_old_failures() noexcept {
  if (failed_ <= kMaxFailures) return;
  const Clock::time_point now = times_.now();
  for (auto at = units_.begin(); at != units_.end();) {
    Unit& unit = (at++)->second;
    if (!unit.failed || now < unit.failed_at + times_.remember) continue;
    unit.failed = false;
    --failed_;
    drop_if_idle(unit);
  }
}

LoadQueue::Unit* LoadQueue::take(const std::string& name, bool wait) {
  const MutexLock lock(mutex_);
  Unit& unit = unit_of(name);
  if (unit.taken && !wait) return nullptr;
  ++unit.lock_waiters;
  while (unit.taken) unlocked_.wait(mutex_);
  --unit.lock_waiters;
  unit.taken = true;
  return &unit;
}

void LoadQueue::give_back(Unit& unit) noexcept {
  Waiter* told = nullptr;
  std::exception_ptr problem;
  std::shared_ptr<void> kept;
  {
    const MutexLock lock(mutex_);
    unit.taken = false;
    if (unit.in_line && unit.first == nullptr) {
      kept = leave_line(unit);
    } else if (unit.in_line) {
      unit.next_try = times_.now();
      tell_line();
    } else if (unit.first != nullptr && !unit.queued) {
      problem = exception_of([&] {
        mutex_.assert_held();
        enqueue(unit);
      });
      if (problem) told = take_waiters(unit);
    }
    drop_if_idle(unit);
  }
  unlocked_.notify_all();
  tell(told, problem);
}

void LoadQueue::tell(Waiter* told, const std::exception_ptr& problem) noexcept {
  while (told != nullptr) {
    Waiter& waiter = *told;
    told = waiter.next;
    waiter.problem = problem;
    waiter.notify(waiter.context);
  }
}

void LoadQueue::run() noexcept {
  for (;;) {
    Unit* unit = nullptr;
    {
      const MutexLock lock(mutex_);
      ++idle_;
      while (!stopping() && (unit = next_of_line(times_.now())) == nullptr && queue_.empty()) {
        if (const Clock::time_point next = next_look(); next == Clock::time_point::max())
          wake_.wait(mutex_);
        else
          wake_.wait_for(mutex_, std::max(next - times_.now(), std::chrono::nanoseconds(0)));
      }
      --idle_;
      if (stopping()) return;
      if (unit == nullptr) {
        unit = queue_.front();
        queue_.pop_front();
        unit->queued = false;
        // The thread that has the name releases it, and then it is queued again if there are waiters.
        if (unit->taken) continue;
        if (unit->first == nullptr) {
          drop_if_idle(*unit);
          continue;
        }
      }
      unit->taken = unit->loading = true;
      unit->waits_for_room = false;
      unit->seen = wakes_;
    }
    load_one(*unit);
  }
}

// A load in line that is due for a retry. If its patience has ended, this is the last try.
LoadQueue::Unit* LoadQueue::next_of_line(Clock::time_point now) noexcept {
  for (Unit* const unit : line_)
    if (!unit->taken && (unit->next_try <= now || unit->until <= now)) return unit;
  return nullptr;
}

LoadQueue::Clock::time_point LoadQueue::next_look() const noexcept {
  Clock::time_point next = Clock::time_point::max();
  for (const Unit* const unit : line_)
    if (!unit->taken) next = std::min({next, unit->next_try, unit->until});
  return next;
}

bool LoadQueue::is_first(const Unit& unit, uint64_t kinds) const noexcept {
  for (const Unit* const one : line_) {
    if (one == &unit) return true;
    if ((one->lacks & kinds) != 0) return false;
  }
  return true;
}

void LoadQueue::tell_line() noexcept {
  wake_.notify_one();
  by_hand_.notify_all();
}

bool LoadQueue::join_line(Unit& unit) noexcept {
  const Clock::time_point now = times_.now();
  if (!unit.in_line) {
    if (!succeeds([&] {
          mutex_.assert_held();
          line_.push_back(&unit);
        }))
      return false;
    unit.in_line = true;
    unit.until = now + times_.patience;
    unit.pause = times_.pause;
  } else {
    unit.pause = std::min(2 * unit.pause, times_.look_again);
  }
  if (unit.until <= now) return false;
  const bool first = is_first(unit, unit.lacks);
  unit.not_before = now + unit.pause;
  unit.next_try = unit.seen != wakes_ ? unit.not_before : first ? now + times_.look_again : unit.until;
  return true;
}

std::shared_ptr<void> LoadQueue::leave_line(Unit& unit) noexcept {
  if (unit.in_line) {
    const uint64_t kinds = unit.lacks;
    const bool first = is_first(unit, kinds);
    std::erase(line_, &unit);
    unit.in_line = false;
    // Others may now have become first in line.
    uint64_t before = 0;
    for (Unit* const next : line_) {
      if (first && (next->lacks & kinds) != 0 && (next->lacks & before) == 0) next->next_try = times_.now();
      before |= next->lacks;
    }
    tell_line();
  }
  return std::move(unit.loader_data);
}

void LoadQueue::wake_line(bool all) noexcept {
  const MutexLock lock(mutex_);
  ++wakes_;  // seen by the tries in progress
  if (line_.empty()) return;
  const Clock::time_point now = times_.now();
  uint64_t before = 0;
  for (Unit* const unit : line_) {
    if (all || (unit->lacks & before) == 0) unit->next_try = std::min(unit->next_try, std::max(now, unit->not_before));
    before |= unit->lacks;
  }
  tell_line();
}

void LoadQueue::with_room(Unit& unit, const std::function<void(const Wanted&)>& work) {
  {
    const MutexLock lock(mutex_);
    unit.by_hand = true;
    unit.until = times_.now() + times_.patience;  // also for a request's load that already waits in line
  }
  for (;;) {
    {
      const MutexLock lock(mutex_);
      unit.waits_for_room = false;
      unit.seen = wakes_;
    }
    std::exception_ptr problem = exception_of([&] { work(Wanted(*this, unit)); });
    std::shared_ptr<void> kept;
    const MutexLock lock(mutex_);
    if (problem && unit.waits_for_room && !stopping() && join_line(unit)) {
      for (;;) {
        const std::chrono::nanoseconds left = std::min(unit.next_try, unit.until) - times_.now();
        if (stopping() || left.count() <= 0) break;
        by_hand_.wait_for(mutex_, left);
      }
      continue;
    }
    unit.by_hand = false;
    kept = leave_line(unit);
    if (problem) std::rethrow_exception(problem);
    return;
  }
}

void LoadQueue::load_one(Unit& unit) noexcept {
  const Clock::time_point begun = Clock::now();
  const std::exception_ptr problem = exception_of([&] { loader_.load(unit.name, Wanted(*this, unit)); });
  Failure failure{500, ErrorCode::kInternal, {}};
  if (problem && !succeeds([&] { failure = describe_failure(problem); })) failure.code = ErrorCode::kUnavailable;
  Waiter* told = nullptr;
  std::shared_ptr<void> kept;
  {
    const MutexLock lock(mutex_);
    unit.taken = unit.loading = false;
    const bool again = problem && unit.first != nullptr && !stopping();
    if (again && unit.waits_for_room && join_line(unit)) {
      unlocked_.notify_all();
      return;
    }
    kept = leave_line(unit);
    // The current waiters arrived after the last of the previous ones had cancelled.
    if (again && failure.code == ErrorCode::kCancelled && succeeds([&] {
          mutex_.assert_held();
          enqueue(unit);
        })) {
      unlocked_.notify_all();
      return;
    }
    ++(problem ? counts_.failures : counts_.loads);
    counts_.load_ns += static_cast<uint64_t>((Clock::now() - begun).count());
    const bool remembers = problem && !is_passing(failure.code);
    if (remembers != unit.failed) remembers ? ++failed_ : --failed_;
    unit.failed = remembers;
    if (remembers) {
      unit.code = failure.code;
      unit.reason.swap(failure.message);
      unit.failed_at = times_.now();
    }
    told = take_waiters(unit);
    drop_if_idle(unit);
    drop_old_failures();
  }
  unlocked_.notify_all();
  tell(told, problem);
}

std::map<std::string, LoadQueue::Status, std::less<>> LoadQueue::statuses() const {
  std::map<std::string, Status, std::less<>> all;
  const MutexLock lock(mutex_);
  for (const auto& [name, unit] : units_) {
    if (unit.loading || unit.queued || unit.in_line) {
      all[name] = {};
    } else if (unit.failed) {
      all[name] = {State::kFailed, unit.reason};
    }
  }
  return all;
}

LoadQueue::Counts LoadQueue::counts() const {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.in_line =
      std::count_if(line_.begin(), line_.end(), [](const Unit* unit) { return !unit->taken || unit->by_hand; });
  return counts;
}

}  // namespace sconce::server::registry
