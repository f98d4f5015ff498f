#include "server/rollout/push/push_ledger.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"

namespace sconce::server::rollout {
namespace {

constexpr std::array kNames = {"receiving", "staged", "prepared", "committed", "undone", "aborted", "expired", "lost"};

std::string fate_of(const PushRecord& record) {
  const std::string text = "push " + record.terms.id + " is over: it ";
  switch (record.state) {
    case PushState::kCommitted:
      return text + "was committed as weight version " + std::to_string(record.weight_version);
    case PushState::kUndone:
      return text + "was undone by weight version " + std::to_string(record.weight_version);
    case PushState::kExpired:
      return text + "expired";
    case PushState::kLost:
      return text + "was lost when the model was loaded again";
    default:
      return text + "was aborted";
  }
}

}  // namespace

const char* push_state_name(PushState state) noexcept { return kNames[static_cast<size_t>(state)]; }

std::optional<PushState> push_state_from(std::string_view name) noexcept {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<PushState>(i);
  return std::nullopt;
}

weights::StoredPush note_of(const PushRecord& record) {
  weights::StoredPush push;
  push.id = record.terms.id;
  push.state = push_state_name(record.state);
  push.label = record.terms.label;
  push.set = record.terms.set;
  push.weight_version = record.weight_version;
  push.members = record.terms.members;
  push.member = record.terms.member;
  return push;
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

void PushLedger::on_end(std::function<void(const PushRecord&)> hook) { end_hook_ = std::move(hook); }

void PushLedger::end(PushRecord& record, PushState state) noexcept {
  record.state = state;
  record.told = false;
}

// The pushes have already ended, so this must not throw. Without memory, the next call notifies.
void PushLedger::tell_ends() noexcept {
  if (!end_hook_) return;
  std::vector<PushRecord> ended;
  succeeds([&] {
    const MutexLock lock(mutex_);
    for (PushRecord& record : records_) {
      if (record.open() || record.told) continue;
      ended.push_back(record);
      record.told = true;
    }
  });
  for (const PushRecord& record : ended) end_hook_(record);
}

void PushLedger::restore(const PushPlace& place, std::span<const weights::StoredPush> pushes, uint64_t active) {
  const MutexLock lock(mutex_);
  for (const weights::StoredPush& push : pushes) {
    const std::optional<PushState> state = push_state_from(push.state);
    if (!state || *state <= PushState::kPrepared || !is_push_id(push.id)) continue;  // a state of a later release
    PushRecord* record = look_up(place.model, place.version, push.id);
    if (!record) {
      PushTerms terms;
      terms.id = push.id;
      terms.members = push.members;
      terms.member = static_cast<size_t>(push.member);
      terms.label = push.label;
      terms.set = push.set;
      record = &add({place.model, place.version, nullptr}, std::move(terms));
      record->state = *state;
      record->weight_version = push.weight_version;
      record->told = true;
    }
    if (!push.set.empty()) {
      // Its set exists, so this is the result of the push.
      record->state = *state;
      record->weight_version = push.weight_version;
      record->served = place.served;
    } else if (push.stored && active != 0 && push.weight_version == active && record->weight_version == active) {
      record->served = place.served;
    }
  }
}

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

// If the model was reloaded meanwhile, the staged set of the push is gone.
void PushLedger::notice_reload(PushRecord& record, const PushPlace& place) noexcept {
  if (!record.open() || (place.served && record.served.lock() == place.served)) return;
  end(record, record.state == PushState::kPrepared ? PushState::kLost : PushState::kExpired);
}

PushRecord& PushLedger::under_way(const PushPlace& place, std::string_view id) {
  PushRecord& record = known(place, id);
  SCONCE_CHECK(record.open(), kBusy, fate_of(record));
  return record;
}

PushRecord& PushLedger::add(const PushPlace& place, PushTerms terms) {
  const auto ended = [&](const PushRecord& one) {
    return !one.open() && one.version == place.version && one.model == place.model &&
           one.terms.set.empty() == terms.set.empty();
  };
  for (auto count = std::count_if(records_.begin(), records_.end(), ended); count >= static_cast<long>(kMaxEnded);
       --count)
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
    if (record.open() && record.terms.set.empty() && record.version == place.version && record.model == place.model &&
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

void PushLedger::renew(const PushPlace& place, std::string_view id, Clock::time_point now,
                       std::chrono::milliseconds lease) {
  Clock::time_point deadline;
  {
    const MutexLock lock(mutex_);
    PushRecord& record = under_way(place, id);
    if (lease.count() > 0) record.terms.lease = lease;
    record.deadline = deadline = now + record.terms.lease;
    record.in_doubt = false;
  }
  // A longer lease needs no new alarm: the current one fires, finds the new deadline and is set again.
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

void PushLedger::committed(const PushPlace& place, std::string_view id, uint64_t weight_version) {
  {
    const MutexLock lock(mutex_);
    PushRecord& record = under_way(place, id);
    end(record, PushState::kCommitted);
    record.weight_version = weight_version;
    forget_authorizations(record);
  }
  tell_ends();
}

void PushLedger::undone(const PushPlace& place, std::string_view id, uint64_t weight_version) {
  {
    const MutexLock lock(mutex_);
    PushRecord& record = known(place, id);
    SCONCE_CHECK(record.state == PushState::kCommitted, kBusy,
                 record.open() ? "push " + record.terms.id + " is not committed" : fate_of(record));
    end(record, PushState::kUndone);
    record.weight_version = weight_version;
  }
  tell_ends();
}

void PushLedger::forget_authorizations(const PushRecord& last) noexcept {
  for (PushRecord& record : records_)
    if (&record != &last && !record.open() && record.model == last.model && record.version == last.version &&
        record.terms.set == last.terms.set)
      record.terms.authorization.clear();
}

void PushLedger::authorize(const PushPlace& place, std::string_view id, std::string_view authorization) {
  const MutexLock lock(mutex_);
  PushRecord* const record = look_up(place.model, place.version, id);
  if (!record || authorization.empty() || record->terms.members.empty()) return;
  if (record->open() || record->state == PushState::kCommitted) record->terms.authorization = authorization;
}

std::optional<PushState> PushLedger::abort(const PushPlace& place, std::string_view id) {
  std::optional<PushState> before;
  {
    const MutexLock lock(mutex_);
    PushRecord* record = look_up(place.model, place.version, id);
    if (!record) {
      PushTerms terms;
      terms.id = id;
      record = &add(place, std::move(terms));
    } else {
      known(place, id);
      SCONCE_CHECK(record->state != PushState::kCommitted, kBusy, fate_of(*record));
      before = record->state;
    }
    if (record->open()) end(*record, PushState::kAborted);
    record->terms.authorization.clear();
  }
  tell_ends();
  return before;
}

void PushLedger::set_dropped(const PushPlace& place) {
  {
    const MutexLock lock(mutex_);
    if (PushRecord* const record = open_at(place); record && record->state != PushState::kReceiving)
      end(*record, PushState::kAborted);
  }
  tell_ends();
}

void PushLedger::set_published(const PushPlace& place, uint64_t weight_version) {
  {
    const MutexLock lock(mutex_);
    PushRecord* const record = open_at(place);
    if (!record || record->state == PushState::kReceiving) return;
    end(*record, PushState::kCommitted);
    record->weight_version = weight_version;
    forget_authorizations(*record);
  }
  tell_ends();
}

void PushLedger::version_changed(const PushPlace& place, std::string_view set, uint64_t from, uint64_t to) noexcept {
  const MutexLock lock(mutex_);
  for (PushRecord& record : records_)
    if (record.terms.set == set && record.weight_version == from && record.served.lock() == place.served)
      record.weight_version = to;
}

void PushLedger::forget(const PushPlace& place, std::string_view id) noexcept {
  const MutexLock lock(mutex_);
  std::erase_if(records_, [&](const PushRecord& record) {
    return record.open() && record.terms.id == id && record.version == place.version && record.model == place.model;
  });
}

bool PushLedger::expire(const PushPlace& place, std::string_view id, Clock::time_point now) {
  {
    const MutexLock lock(mutex_);
    PushRecord& record = known(place, id);
    if (!record.open() || record.deadline > now) return false;
    record.in_doubt = record.follows();
    if (record.in_doubt) return false;
    end(record, PushState::kExpired);
    record.terms.authorization.clear();
  }
  tell_ends();
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
  std::vector<PushRecord> found;
  {
    const MutexLock lock(mutex_);
    for (PushRecord& record : records_) {
      if (record.version != place.version || record.model != place.model) continue;
      notice_reload(record, place);
      found.push_back(record);
    }
  }
  tell_ends();
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

}  // namespace sconce::server::rollout
