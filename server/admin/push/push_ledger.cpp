#include "server/admin/push/push_ledger.h"

#include <algorithm>
#include <array>

#include "sconce/check.h"

namespace sconce::server {
namespace {

std::string fate_of(const PushRecord& record) {
  const std::string text = "push " + record.terms.id + " is over: it ";
  switch (record.state) {
    case PushState::kCommitted:
      return text + "was committed as generation " + std::to_string(record.generation);
    case PushState::kUndone:
      return text + "was undone by generation " + std::to_string(record.generation);
    case PushState::kExpired:
      return text + "expired";
    case PushState::kLost:
      return text + "was lost when the model was loaded again";
    default:
      return text + "was aborted";
  }
}

}  // namespace

const char* push_state_name(PushState state) noexcept {
  constexpr std::array kNames = {"receiving", "staged",  "prepared", "committed",
                                 "undone",    "aborted", "expired",  "lost"};
  return kNames[static_cast<size_t>(state)];
}

bool is_push_id(std::string_view text) noexcept {
  constexpr size_t kMost = 64;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= kMost && std::all_of(text.begin(), text.end(), allowed);
}

void PushLedger::on_deadline(std::function<void(Clock::time_point)> hook) { hook_ = std::move(hook); }

void PushLedger::expect(Clock::time_point deadline) const {
  if (hook_) hook_(deadline);
}

PushRecord* PushLedger::look_up(std::string_view model, int64_t version, std::string_view id) {
  for (PushRecord& record : records_)
    if (record.terms.id == id && record.version == version && record.model == model) return &record;
  return nullptr;
}

PushRecord& PushLedger::known(const PushPlace& place, std::string_view id) {
  PushRecord* const record = look_up(place.model, place.version, id);
  SCONCE_CHECK(record != nullptr, kNotFound, "no push ", id,
               " is known here: it never was, ended long ago, or the server was restarted");
  notice_reload(*record, place);
  return *record;
}

// If the model was loaded again since, the set that the push staged is gone.
void PushLedger::notice_reload(PushRecord& record, const PushPlace& place) noexcept {
  if (!record.open() || (place.served && record.served.lock() == place.served)) return;
  record.state = record.state == PushState::kPrepared ? PushState::kLost : PushState::kExpired;
}

PushRecord& PushLedger::under_way(const PushPlace& place, std::string_view id) {
  PushRecord& record = known(place, id);
  SCONCE_CHECK(record.open(), kBusy, fate_of(record));
  return record;
}

PushRecord& PushLedger::add(const PushPlace& place, PushTerms terms) {
  const auto ended = [&](const PushRecord& one) {
    return !one.open() && one.version == place.version && one.model == place.model;
  };
  for (auto count = std::count_if(records_.begin(), records_.end(), ended); count >= static_cast<long>(kKept); --count)
    records_.erase(std::find_if(records_.begin(), records_.end(), ended));
  PushRecord record;
  record.model = place.model;
  record.version = place.version;
  record.served = place.served;
  record.terms = std::move(terms);
  return records_.emplace_back(std::move(record));
}

PushRecord* PushLedger::open_at(const PushPlace& place) noexcept {
  for (PushRecord& record : records_)
    if (record.open() && record.version == place.version && record.model == place.model &&
        record.served.lock() == place.served)
      return &record;
  return nullptr;
}

void PushLedger::begin(const PushPlace& place, PushTerms terms, Clock::time_point now) {
  const Clock::time_point deadline = now + terms.lease;
  {
    const MutexLock lock(mutex_);
    if (const PushRecord* const before = look_up(place.model, place.version, terms.id))
      SCONCE_FAIL(kBusy, before->open() ? "push " + terms.id + " is under way" : fate_of(*before));
    add(place, std::move(terms)).deadline = deadline;
  }
  expect(deadline);
}

void PushLedger::prolong(const PushPlace& place, std::string_view id, Clock::time_point now,
                         std::chrono::milliseconds lease) {
  Clock::time_point deadline;
  {
    const MutexLock lock(mutex_);
    PushRecord& record = under_way(place, id);
    if (lease.count() > 0) record.terms.lease = lease;
    record.deadline = deadline = now + record.terms.lease;
    record.in_doubt = false;
  }
  // A longer lease needs no new alarm: the old one rings, finds the new deadline and is set again.
  if (lease.count() > 0) expect(deadline);
}

void PushLedger::check_open(const PushPlace& place, std::string_view id) const {
  const MutexLock lock(mutex_);
  const_cast<PushLedger*>(this)->under_way(place, id);
}

void PushLedger::check_committed(const PushPlace& place, std::string_view id) const {
  const MutexLock lock(mutex_);
  const PushRecord& record = const_cast<PushLedger*>(this)->known(place, id);
  SCONCE_CHECK(record.state == PushState::kCommitted, kBusy,
               record.open() ? "push " + record.terms.id + " is not committed" : fate_of(record));
}

void PushLedger::staged(const PushPlace& place, std::string_view id, Clock::time_point now) {
  const MutexLock lock(mutex_);
  PushRecord& record = under_way(place, id);
  record.state = PushState::kStaged;
  record.deadline = now + record.terms.lease;
}

void PushLedger::prepare(const PushPlace& place, std::string_view id, Clock::time_point now) {
  const MutexLock lock(mutex_);
  PushRecord& record = under_way(place, id);
  SCONCE_CHECK(record.state != PushState::kReceiving, kFailedPrecondition, "push ", id, " is not staged yet");
  record.state = PushState::kPrepared;
  record.deadline = now + record.terms.lease;
  record.in_doubt = false;
}

void PushLedger::committed(const PushPlace& place, std::string_view id, uint64_t generation) {
  const MutexLock lock(mutex_);
  PushRecord& record = under_way(place, id);
  record.state = PushState::kCommitted;
  record.generation = generation;
  record.terms.authorization.clear();
}

void PushLedger::undone(const PushPlace& place, std::string_view id, uint64_t generation) {
  const MutexLock lock(mutex_);
  PushRecord& record = known(place, id);
  SCONCE_CHECK(record.state == PushState::kCommitted, kBusy,
               record.open() ? "push " + record.terms.id + " is not committed" : fate_of(record));
  record.state = PushState::kUndone;
  record.generation = generation;
}

std::optional<PushState> PushLedger::abort(const PushPlace& place, std::string_view id) {
  const MutexLock lock(mutex_);
  PushRecord* const record = look_up(place.model, place.version, id);
  if (!record) {
    PushTerms terms;
    terms.id = id;
    add(place, std::move(terms)).state = PushState::kAborted;
    return std::nullopt;
  }
  known(place, id);
  SCONCE_CHECK(record->state != PushState::kCommitted, kBusy, fate_of(*record));
  const PushState before = record->state;
  if (record->open()) record->state = PushState::kAborted;
  record->terms.authorization.clear();
  return before;
}

void PushLedger::set_dropped(const PushPlace& place) noexcept {
  const MutexLock lock(mutex_);
  if (PushRecord* const record = open_at(place); record && record->state != PushState::kReceiving)
    record->state = PushState::kAborted;
}

void PushLedger::set_published(const PushPlace& place, uint64_t generation) noexcept {
  const MutexLock lock(mutex_);
  PushRecord* const record = open_at(place);
  if (!record || record->state == PushState::kReceiving) return;
  record->state = PushState::kCommitted;
  record->generation = generation;
}

void PushLedger::forget(const PushPlace& place, std::string_view id) noexcept {
  const MutexLock lock(mutex_);
  std::erase_if(records_, [&](const PushRecord& record) {
    return record.open() && record.terms.id == id && record.version == place.version && record.model == place.model;
  });
}

bool PushLedger::expire(const PushPlace& place, std::string_view id, Clock::time_point now) {
  const MutexLock lock(mutex_);
  PushRecord& record = known(place, id);
  if (!record.open() || record.deadline > now) return false;
  record.in_doubt = record.follows();
  if (record.in_doubt) return false;
  record.state = PushState::kExpired;
  record.terms.authorization.clear();
  return true;
}

void PushLedger::postpone(std::string_view model, int64_t version, std::string_view id, Clock::time_point now,
                          Clock::time_point when) noexcept {
  const MutexLock lock(mutex_);
  PushRecord* const record = look_up(model, version, id);
  if (record && record->open() && record->deadline <= now) record->deadline = when;
}

std::optional<PushRecord> PushLedger::find(std::string_view model, int64_t version, std::string_view id) const {
  const MutexLock lock(mutex_);
  for (const PushRecord& record : records_)
    if (record.terms.id == id && record.version == version && record.model == model) return record;
  return std::nullopt;
}

std::vector<PushRecord> PushLedger::list(const PushPlace& place) {
  const MutexLock lock(mutex_);
  std::vector<PushRecord> found;
  for (PushRecord& record : records_) {
    if (record.version != place.version || record.model != place.model) continue;
    notice_reload(record, place);
    found.push_back(record);
  }
  return found;
}

std::vector<PushRecord> PushLedger::due(Clock::time_point now) const {
  const MutexLock lock(mutex_);
  std::vector<PushRecord> found;
  for (const PushRecord& record : records_)
    if (record.open() && record.deadline <= now) found.push_back(record);
  return found;
}

std::optional<PushLedger::Clock::time_point> PushLedger::next_deadline() const {
  const MutexLock lock(mutex_);
  std::optional<Clock::time_point> first;
  for (const PushRecord& record : records_)
    if (record.open() && (!first || record.deadline < *first)) first = record.deadline;
  return first;
}

}  // namespace sconce::server
