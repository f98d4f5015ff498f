#include "server/rollout/work/guards.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"

namespace sconce::server::rollout {
namespace {

uint64_t failures_in_model(const registry::ServedModel& served) {
  return served.statistics().totals().failures_by_reason[static_cast<size_t>(scheduling::FailureReason::kBackend)];
}

GuardRecord record_of(const std::shared_ptr<registry::ServedModel>& served, Guards::Watch watch) {
  GuardRecord record;
  record.served = served;
  record.model = served->interface().name;
  record.version = served->interface().version;
  record.weight_version = watch.weight_version;
  record.push = std::move(watch.push);
  record.bounds = watch.bounds;
  record.end = Guards::Clock::now() + watch.left;
  record.stored = watch.stored;
  record.loading = watch.loading;
  record.noted = watch.left;
  record.failures_before = failures_in_model(*served);
  record.counts = std::make_shared<weights::GuardCounts>(watch.weight_version);
  return record;
}

}  // namespace

const char* guard_state_name(GuardState state) noexcept {
  constexpr const char* kNames[] = {"watching", "passed", "rolled_back", "ended", "failed"};
  return kNames[static_cast<size_t>(state)];
}

void Guards::on_begin(std::function<void()> hook) { hook_ = std::move(hook); }

std::shared_ptr<weights::GuardCounts> Guards::add(GuardRecord record) {
  const MutexLock lock(mutex_);
  std::erase_if(records_, [](const GuardRecord& other) { return other.served.expired(); });
  const std::shared_ptr<registry::ServedModel> served = record.served.lock();
  const auto last = std::find_if(records_.begin(), records_.end(),
                                 [&](const GuardRecord& other) { return other.served.lock() == served; });
  if (record.state == GuardState::kWatching) served->answers().add(record.counts);
  if (last == records_.end()) {
    records_.push_back(std::move(record));
    return nullptr;
  }
  std::shared_ptr<weights::GuardCounts> before = last->state == GuardState::kWatching ? last->counts : nullptr;
  *last = std::move(record);
  return before;
}

void Guards::begin(const std::shared_ptr<registry::ServedModel>& served, Watch watch) {
  if (const auto before = add(record_of(served, std::move(watch)))) served->answers().remove(*before);
  if (hook_) hook_();
}

void Guards::rolled_back(const std::shared_ptr<registry::ServedModel>& served, Watch watch, std::string reason) {
  GuardRecord record = record_of(served, std::move(watch));
  record.state = GuardState::kRolledBack;
  record.reason = std::move(reason);
  add(std::move(record));
  counters_.guards_rolled_back.fetch_add(1, std::memory_order_relaxed);
}

void Guards::found(const GuardRecord& record) {
  const MutexLock lock(mutex_);
  for (GuardRecord& own : records_)
    if (own.counts == record.counts) own.loading = false;
}

void Guards::noted(const GuardRecord& record, std::chrono::microseconds left) {
  const MutexLock lock(mutex_);
  for (GuardRecord& own : records_)
    if (own.counts == record.counts) own.noted = left;
}

void Guards::check_over(const registry::ServedModel& served) const {
  const std::optional<GuardRecord> record = find(served);
  if (!record || record->state != GuardState::kWatching || record->weight_version != served.model().weight_version())
    return;
  const auto left = std::chrono::ceil<std::chrono::seconds>(record->end - Clock::now());
  SCONCE_FAIL(kBusy, "weight version ", record->weight_version, " is watched for ", std::max<int64_t>(left.count(), 0),
              " s more and may have to be rolled back (guard): others can be staged after that");
}

void Guards::end(const GuardRecord& record, GuardState state, std::string reason) {
  const std::shared_ptr<registry::ServedModel> served = record.served.lock();
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

weights::GuardTotals Guards::totals_of(const GuardRecord& record) {
  if (record.state != GuardState::kWatching) return record.totals;
  const std::shared_ptr<registry::ServedModel> served = record.served.lock();
  return record.counts->totals(served ? failures_in_model(*served) - record.failures_before : 0);
}

std::optional<GuardRecord> Guards::find(const registry::ServedModel& served) const {
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

}  // namespace sconce::server::rollout
