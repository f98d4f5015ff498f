#include "server/admin/judging/guard_keeper.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "server/admin/publication.h"
#include "server/admin/push_api.h"
#include "server/admin/served_weights.h"
#include "server/base/failure.h"
#include "server/base/log.h"

namespace sconce::server {
namespace {

using Clock = Guards::Clock;

constexpr std::chrono::milliseconds kEvery{100};
// For another server of a push that is to roll back too: how long an answer may take, how often it is asked, and when
// again.
constexpr std::chrono::seconds kRollbackPatience{10};
constexpr int kAsks = 5;
constexpr std::chrono::milliseconds kRollbackAgain{500};

}  // namespace

GuardKeeper::GuardKeeper(AlarmClock& clock, Service& service)
    : AdminAlarm(clock, service.admin_threads, kEvery), service_(service) {
  service_.guards.on_begin([this] { set(Clock::now() + kEvery); });
}

void GuardKeeper::work() {
  // One look at a time. A watch that begins meanwhile is seen below.
  if (!looking_.try_lock()) return;
  {
    const MutexLock looking(looking_, std::adopt_lock);
    for (const GuardRecord& record : service_.guards.watching()) {
      const std::string problem = problem_of([&] { look_at(record); });
      if (!problem.empty())
        log_debug("model {} version {}: generation {} cannot be looked at now: {}", record.model, record.version,
                  record.generation, printable(problem));
    }
  }
  if (!service_.draining && !service_.guards.watching().empty()) set(Clock::now() + kEvery);
}

void GuardKeeper::look_at(const GuardRecord& record) {
  const std::shared_ptr<ServedModel> served = record.served.lock();
  const auto end = [&](GuardState state, std::string reason) { service_.guards.end(record, state, std::move(reason)); };
  if (!served || !succeeds([&] { check_served(service_, *served); }))
    return end(GuardState::kEnded, "the model was unloaded or replaced");
  if (const uint64_t now = served->model().generation(); now != record.generation)
    return end(GuardState::kEnded, "generation " + std::to_string(now) + " was published");
  if (const std::string reason = passed_bound(record.bounds, record.totals); !reason.empty())
    return roll_back(record, *served, reason);
  if (Clock::now() < record.end) return;
  end(GuardState::kPassed, {});
  audit(record, *served, "guard_passed", {});
  log_info("model {} version {}: generation {} was watched and stays: {} answers, {} failures, p99 {} us", record.model,
           record.version, record.generation, record.totals.answers, record.totals.failures, record.totals.p99.count());
}

void GuardKeeper::roll_back(const GuardRecord& record, ServedModel& served, const std::string& reason) {
  std::string problem;
  {
    const ModelClaims::Claim claim(service_.claims, served, "a guard rolls its weights back");
    if (served.model().generation() != record.generation) return;  // seen at the next look
    uint64_t generation = 0;
    problem = problem_of([&] {
      PublishOptions options;
      options.push = record.push;
      options.reason = reason;
      generation = publish_previous(service_, served, {"guard", reason}, options).generation;
    });
    service_.guards.end(record, problem.empty() ? GuardState::kRolledBack : GuardState::kFailed,
                        problem.empty() ? reason : reason + "; rolling back failed: " + problem);
    if (problem.empty()) {
      log_error("model {} version {}: generation {} is rolled back, {} is active: {}", record.model, record.version,
                record.generation, generation, reason);
      if (!record.push.empty()) service_.pushes.undone(place_of(record.served.lock()), record.push, generation);
    } else {
      audit(record, served, "guard_failed", reason + "; " + problem);
      log_error("model {} version {}: generation {} should be rolled back ({}), but cannot be: {}", record.model,
                record.version, record.generation, reason, printable(problem));
    }
  }
  if (problem.empty() && !record.push.empty())
    service_.admin_threads.run([this, record] { tell_others(record); }, [](const std::exception_ptr&) {}, [] {});
}

void GuardKeeper::audit(const GuardRecord& record, const ServedModel& served, const char* event, std::string reason) {
  AuditEntry entry = audit_of(event, served);
  entry.push = record.push;
  entry.reason = std::move(reason);
  entry.server = "guard";
  service_.audit.add(entry);
}

void GuardKeeper::tell_others(const GuardRecord& record) const {
  const auto push = service_.pushes.find(record.model, record.version, record.push);
  if (!push) return;
  const PushTerms& terms = push->terms;
  for (size_t i = 0; i < terms.members.size(); ++i) {
    if (i == terms.member) continue;
    std::string problem;
    for (int asks = 0; asks < kAsks && !service_.draining; ++asks) {
      if (asks > 0) std::this_thread::sleep_for(kRollbackAgain);
      const Answer answer = service_.peers.ask(*push, i, "POST", "rollback", kRollbackPatience);
      problem = answer.ok() ? "" : answer.reason();
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

}  // namespace sconce::server
