#include "server/rollout/watch/guard_watcher.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/registry/model_weights.h"
#include "server/rollout/publication.h"
#include "server/rollout/push_api.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::rollout {
namespace {

using Clock = Guards::Clock;

constexpr std::chrono::milliseconds kEvery{100};
// For other servers of a push that must roll back too: maximum wait for an answer, number of requests, and their
// interval.
constexpr std::chrono::seconds kRollbackPatience{10};
constexpr int kAsks = 5;
constexpr std::chrono::milliseconds kRollbackAgain{500};
// The remaining window is stored this many times per window, but at most once per second.
constexpr int kNotes = 8;

std::chrono::microseconds left_of(const GuardRecord& record) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(record.end - Clock::now());
  return std::max(left, std::chrono::microseconds(0));
}

// change: of the stored guard.
void change_stored(const GuardRecord& record, weights::StoredWeights& stored,
                   const std::function<void(std::optional<weights::StoredGuard>&)>& change)
    SCONCE_REQUIRES(stored.write_mutex()) {
  const std::string problem = stored.change_guard(record.weight_version, change);
  if (!problem.empty())
    log_warn("model {} version {}: the guard of weight version {} is not stored: {}", record.model, record.version,
             record.weight_version, printable(problem));
}

}  // namespace

GuardWatcher::GuardWatcher(TimerQueue& clock, Rollout& rollout)
    : AdminAlarm(clock, rollout.admin_threads, kEvery), rollout_(rollout) {
  rollout_.guards.on_begin([this] { set(Clock::now() + kEvery); });
}

void GuardWatcher::work() {
  // One thread at a time. A guard that begins meanwhile is handled below.
  if (!looking_.try_lock()) return;
  {
    const MutexLock looking(looking_, std::adopt_lock);
    for (const GuardRecord& record : rollout_.guards.watching()) {
      const std::string problem = problem_of([&] { look_at(record); });
      if (!problem.empty())
        log_debug("model {} version {}: weight version {} cannot be checked now: {}", record.model, record.version,
                  record.weight_version, printable(problem));
    }
  }
  if (!rollout_.draining && !rollout_.guards.watching().empty()) set(Clock::now() + kEvery);
}

void GuardWatcher::look_at(const GuardRecord& record) {
  const std::shared_ptr<registry::ServedModel> served = record.served.lock();
  const auto end = [&](GuardState state, std::string reason) { rollout_.guards.end(record, state, std::move(reason)); };
  const bool found = served && succeeds([&] { check_served(rollout_, *served); });
  if (served && !found && record.loading) return;  // no other thread can find it yet
  if (!found) return end(GuardState::kEnded, "the model was unloaded or replaced");
  if (record.loading) rollout_.guards.found(record);
  if (const uint64_t now = served->model().weight_version(); now != record.weight_version) {
    // A published set need not be stored.
    if (over(record, *served)) end(GuardState::kEnded, "weight version " + std::to_string(now) + " was published");
    return;
  }
  if (const std::string reason = weights::passed_bound(record.bounds, record.totals); !reason.empty())
    return roll_back(record, *served, reason);
  if (Clock::now() < record.end) return note(record, *served);
  if (!over(record, *served)) return;
  end(GuardState::kPassed, {});
  audit(record, *served, "guard_passed", {});
  log_info("model {} version {}: weight version {} passed its guard: {} answers, {} failures, p99 {} us", record.model,
           record.version, record.weight_version, record.totals.answers, record.totals.failures,
           record.totals.p99.count());
}

void GuardWatcher::note(const GuardRecord& record, const registry::ServedModel& served) {
  const std::chrono::microseconds left = left_of(record);
  const auto every = std::max(record.bounds.window / kNotes, std::chrono::microseconds(std::chrono::seconds(1)));
  if (!record.stored || record.noted - left < every) return;
  weights::StoredWeights& stored = *served.weights().stored();
  // While a set is being written, other guards continue; this one is retried later.
  if (!stored.write_mutex().try_lock()) return;
  const MutexLock lock(stored.write_mutex(), std::adopt_lock);
  change_stored(record, stored, [&](std::optional<weights::StoredGuard>& guard) { guard->left = left; });
  rollout_.guards.noted(record, left);
}

// Removes the stored guard, so that a restart does not continue it. False: a set is being written, so the next check
// must retry.
bool GuardWatcher::over(const GuardRecord& record, const registry::ServedModel& served) {
  if (!record.stored) return true;
  weights::StoredWeights& stored = *served.weights().stored();
  if (!stored.write_mutex().try_lock()) return false;
  const MutexLock lock(stored.write_mutex(), std::adopt_lock);
  change_stored(record, stored, [](std::optional<weights::StoredGuard>& guard) { guard.reset(); });
  return true;
}

void GuardWatcher::leave() {
  for (const GuardRecord& record : rollout_.guards.watching()) {
    const std::shared_ptr<registry::ServedModel> served = record.served.lock();
    // A device that was lost while the weights were guarded may have been lost because of them.
    if (!record.stored || !served || served->model().failed()) continue;
    succeeds([&] {
      const MutexLock lock(served->weights().stored()->write_mutex());
      change_stored(record, *served->weights().stored(), [&](std::optional<weights::StoredGuard>& guard) {
        guard->left = left_of(record);
        guard->instance.clear();
      });
    });
  }
}

void GuardWatcher::loaded(const std::shared_ptr<registry::ServedModel>& served, const weights::StartingWeights& start) {
  const scheduling::ModelSignature& interface = served->interface();
  if (start.guard) {
    const weights::StoredGuard& guard = *start.guard;
    rollout_.guards.begin(served, {start.weight_version, guard.bounds, guard.left, guard.push, true, true});
    log_info("model {} version {}: weight version {} is guarded for {} s more", interface.name, interface.version,
             start.weight_version, std::chrono::ceil<std::chrono::seconds>(start.guard->left).count());
  }
  if (!start.gone_back || start.gone_back->to == 0) return;
  const weights::StartingWeights::GoneBack& back = *start.gone_back;
  rollout_.guards.rolled_back(served, {back.from, back.guard.bounds, {}, back.guard.push}, back.reason);
  AuditEntry entry =
      audit_of(back.guard.push.empty() ? "rolled_back" : "undone", rollout_, *served, WeightState::kActive);
  entry.before = back.from;
  entry.push = back.guard.push;
  entry.reason = back.reason;
  entry.server = "guard";
  rollout_.audit.add(entry);
  if (back.guard.push.empty()) return;
  const std::optional<GuardRecord> record = rollout_.guards.find(*served);
  rollout_.admin_threads.run([this, record] { tell_others(*record); }, [](const std::exception_ptr&) {}, [] {});
}

void GuardWatcher::roll_back(const GuardRecord& record, registry::ServedModel& served, const std::string& reason) {
  std::string problem;
  {
    const ModelClaims::Claim claim(rollout_.claims, served, "a guard rolls its weights back", {},
                                   ModelClaims::By::kServer);
    if (served.model().weight_version() != record.weight_version) return;  // detected at the next check
    uint64_t weight_version = 0;
    problem = problem_of([&] {
      PublishOptions options;
      options.push = record.push;
      options.reason = reason;
      weight_version = publish_previous(rollout_, served, {"guard", reason}, options).weight_version;
    });
    rollout_.guards.end(record, problem.empty() ? GuardState::kRolledBack : GuardState::kFailed,
                        problem.empty() ? reason : reason + "; rolling back failed: " + problem);
    if (problem.empty()) {
      log_error("model {} version {}: weight version {} is rolled back, {} is active: {}", record.model, record.version,
                record.weight_version, weight_version, reason);
      if (!record.push.empty()) rollout_.pushes.undone(place_of(record.served.lock()), record.push, weight_version);
    } else {
      audit(record, served, "guard_failed", reason + "; " + problem);
      log_error("model {} version {}: weight version {} should be rolled back ({}), but cannot be: {}", record.model,
                record.version, record.weight_version, reason, printable(problem));
    }
  }
  if (problem.empty() && !record.push.empty())
    rollout_.admin_threads.run([this, record] { tell_others(record); }, [](const std::exception_ptr&) {}, [] {});
}

void GuardWatcher::audit(const GuardRecord& record, const registry::ServedModel& served, const char* event,
                         std::string reason) {
  AuditEntry entry = audit_of(event, served);
  entry.push = record.push;
  entry.reason = std::move(reason);
  entry.server = "guard";
  rollout_.audit.add(entry);
}

void GuardWatcher::tell_others(const GuardRecord& record) const {
  const auto push = rollout_.pushes.find(record.model, record.version, record.push);
  if (!push) return;
  const PushTerms& terms = push->terms;
  for (size_t i = 0; i < terms.members.size(); ++i) {
    if (i == terms.member) continue;
    std::string problem;
    for (int asks = 0; asks < kAsks && !rollout_.draining; ++asks) {
      if (asks > 0) std::this_thread::sleep_for(kRollbackAgain);
      const http::Answer answer = rollout_.peers.ask(*push, i, "POST", "rollback", kRollbackPatience);
      problem = answer.ok() ? "" : rollout_.peers.reason(answer);
      if (problem.empty()) break;
    }
    if (problem.empty())
      log_info("model {} version {}: {} has rolled push {} back too", record.model, record.version,
               printable(terms.members[i]), record.push);
    else
      log_error("model {} version {}: push {} was rolled back here, but {} may still serve it: {}", record.model,
                record.version, record.push, printable(terms.members[i]), printable(problem));
  }
}

}  // namespace sconce::server::rollout
