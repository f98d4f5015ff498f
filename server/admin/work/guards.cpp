#include "server/admin/work/guards.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"

namespace sconce::server {
namespace {

uint64_t failures_in_model(const ServedModel& served) {
  return served.statistics().totals().failures_by_reason[static_cast<size_t>(FailureReason::kBackend)];
}

}  // namespace

const char* guard_state_name(GuardState state) noexcept {
  constexpr const char* kNames[] = {"watching", "passed", "rolled_back", "ended", "failed"};
  return kNames[static_cast<size_t>(state)];
}

void Guards::on_begin(std::function<void()> hook) { hook_ = std::move(hook); }

void Guards::begin(const std::shared_ptr<ServedModel>& served, uint64_t generation, const GuardBounds& bounds,
                   std::string push) {
  GuardRecord record;
  record.served = served;
  record.model = served->interface().name;
  record.version = served->interface().version;
  record.generation = generation;
  record.push = std::move(push);
  record.bounds = bounds;
  record.end = Clock::now() + bounds.window;
  record.failures_before = failures_in_model(*served);
  record.counts = std::make_shared<GuardCounts>(generation);
  std::shared_ptr<GuardCounts> before;
  {
    const MutexLock lock(mutex_);
    std::erase_if(records_, [](const GuardRecord& other) { return other.served.expired(); });
    const auto last = std::find_if(records_.begin(), records_.end(),
                                   [&](const GuardRecord& other) { return other.served.lock() == served; });
    served->answers().add(record.counts);
    if (last == records_.end()) {
      records_.push_back(std::move(record));
    } else {
      if (last->state == GuardState::kWatching) before = last->counts;
      *last = std::move(record);
    }
  }
  if (before) served->answers().remove(*before);
  if (hook_) hook_();
}

void Guards::check_over(const ServedModel& served) const {
  const std::optional<GuardRecord> record = find(served);
  if (!record || record->state != GuardState::kWatching || record->generation != served.model().generation()) return;
  const auto left = std::chrono::ceil<std::chrono::seconds>(record->end - Clock::now());
  SCONCE_FAIL(kBusy, "generation ", record->generation, " is watched for ", std::max<int64_t>(left.count(), 0),
              " s more and may have to be rolled back (guard): others can be staged after that");
}

void Guards::end(const GuardRecord& record, GuardState state, std::string reason) {
  const std::shared_ptr<ServedModel> served = record.served.lock();
  if (served) served->answers().remove(*record.counts);
  const MutexLock lock(mutex_);
  for (GuardRecord& own : records_) {
    if (own.counts != record.counts || own.state != GuardState::kWatching) continue;
    own.totals = totals_of(own);
    own.state = state;
    own.reason = std::move(reason);
    if (state == GuardState::kPassed) counters_.guards_passed.fetch_add(1, std::memory_order_relaxed);
    if (state == GuardState::kRolledBack) counters_.guards_rolled_back.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

GuardTotals Guards::totals_of(const GuardRecord& record) {
  if (record.state != GuardState::kWatching) return record.totals;
  const std::shared_ptr<ServedModel> served = record.served.lock();
  return record.counts->totals(served ? failures_in_model(*served) - record.failures_before : 0);
}

std::optional<GuardRecord> Guards::find(const ServedModel& served) const {
  const MutexLock lock(mutex_);
  for (const GuardRecord& record : records_) {
    if (record.served.lock().get() != &served) continue;
    GuardRecord found = record;
    found.totals = totals_of(record);
    return found;
  }
  return std::nullopt;
}

std::vector<GuardRecord> Guards::watching() const {
  std::vector<GuardRecord> found;
  const MutexLock lock(mutex_);
  for (const GuardRecord& record : records_) {
    if (record.state != GuardState::kWatching) continue;
    found.push_back(record);
    found.back().totals = totals_of(record);
  }
  return found;
}

}  // namespace sconce::server
