#include "server/rollout/push_reconciler.h"

#include <array>
#include <chrono>

#include "sconce/check.h"
#include "server/http/client/admin_client.h"
#include "server/rollout/push_api.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/log.h"

namespace sconce::server::rollout {
namespace {

using Clock = PushLedger::Clock;
using Verdict = PushFinding::Verdict;

// Intervals of retrying failed work, and of asking the other servers again.
constexpr std::chrono::milliseconds kAgain{200}, kAskPeersAgain{1000};
// Maximum wait for another server's answer.
constexpr std::chrono::seconds kPeerPatience{2};

PushAnswer read_answer(const http::Answer& answer) {
  const OrderedJson json = OrderedJson::parse(answer.body, nullptr, false);
  const auto list = json.is_object() ? json.find("pushes") : json.end();
  if (!answer.ok() || list == json.end() || !list->is_array()) return {};
  PushAnswer said{true, std::nullopt};
  for (const OrderedJson& push : *list)
    if (push.is_object() && push.contains("state"))
      said.state = push["state"].is_string() ? push_state_from(push["state"].get<std::string>()) : std::nullopt;
  return said;
}

}  // namespace

PushFinding judge_push(const std::vector<PushAnswer>& answers, size_t self) {
  bool silent = false, committed = false, ended = false;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i == self) continue;
    const std::optional<PushState> state = answers[i].state;
    silent |= !answers[i].answered;
    if (state == PushState::kUndone) return {Verdict::kAbort, "it was undone on another server"};
    committed |= state == PushState::kCommitted;
    ended |= state == PushState::kAborted || state == PushState::kExpired;
  }
  if (committed) return {Verdict::kCommit, "another server has committed it"};
  // A server that has prepared a push ends it only on request, or if it found out that no server has committed it.
  // Therefore one server that has ended the push is sufficient proof.
  if (ended) return {Verdict::kAbort, "another server has ended it"};
  const PushAnswer& first = answers.front();
  if (!first.answered) return {Verdict::kWait, "the server that decides does not answer"};
  if (first.state && *first.state != PushState::kLost) return {Verdict::kWait, "the server that decides has it staged"};
  if (silent) return {Verdict::kWait, "the server that decides has lost it, and another one does not answer"};
  return {Verdict::kAbort, "the server that decides has lost it, and no other has committed it"};
}

PushReconciler::PushReconciler(TimerQueue& clock, Rollout& rollout)
    : AdminAlarm(clock, rollout.admin_threads, kAskPeersAgain), rollout_(rollout) {
  rollout_.pushes.on_deadline([this](Clock::time_point time) { set(time); });
}

void PushReconciler::work() {
  for (const PushRecord& record : rollout_.pushes.due(Clock::now())) {
    const std::string problem = problem_of([&] { reconcile(record); });
    if (!problem.empty())
      log_debug("model {} version {}: push {} cannot be reconciled now: {}", record.model, record.version,
                record.terms.id, printable(problem));
    const Clock::time_point now = Clock::now();
    rollout_.pushes.postpone(record.model, record.version, record.terms.id, now,
                             now + (record.in_doubt ? kAskPeersAgain : kAgain));
  }
  if (const auto next = rollout_.pushes.next_deadline()) set(*next);
}

void PushReconciler::reconcile(const PushRecord& record) {
  const std::string& id = record.terms.id;
  std::shared_ptr<registry::ServedModel> served;
  if (!succeeds(
          [&] { served = rollout_.repository.snapshot()->loaded(record.model, std::to_string(record.version)); })) {
    (void)rollout_.pushes.list({record.model, record.version, nullptr});  // detects that the model was unloaded
    return;
  }
  const PushPlace place = place_of(served);
  if (record.state == PushState::kReceiving) {
    // An upload that still receives the set has claimed the model. It stops when it sees that the push has ended.
    if (!rollout_.pushes.expire(place, id, Clock::now())) return;
    log_warn("model {} version {}: push {} expired while its weights arrived", record.model, record.version, id);
    tell_end(rollout_, place, id, "expired");
    return;
  }
  {
    const ModelClaims::Claim claim(rollout_.claims, *served, "push " + id + " has expired", {},
                                   ModelClaims::By::kServer);
    if (rollout_.pushes.expire(place, id, Clock::now())) {
      drop_held(served->model(), record.terms.set);
      log_warn("model {} version {}: push {} expired, its staged weights were dropped", record.model, record.version,
               id);
      tell_end(rollout_, place, id, "expired");
      return;
    }
  }
  const auto now = rollout_.pushes.find(record.model, record.version, id);
  if (now && now->open() && now->in_doubt) decide(record, place, *served);
}

PushFinding PushReconciler::ask_members(const PushRecord& record) const {
  const PushTerms& terms = record.terms;
  std::vector<PushAnswer> answers(std::max(terms.members.size(), terms.member + 1));
  const auto ask = [&](size_t member, const char* method, const char* action) {
    return rollout_.peers.ask(record, member, method, action, kPeerPatience);
  };
  std::string silence;
  for (size_t i = 0; i < terms.members.size(); ++i) {
    if (i == terms.member) continue;
    if (rollout_.draining) return {Verdict::kWait, "this server is ending"};
    const http::Answer answer = ask(i, "GET", "pushes");
    answers[i] = read_answer(answer);
    if (!answers[i].answered && silence.empty()) silence = terms.members[i] + ": " + rollout_.peers.reason(answer);
  }
  PushFinding finding = judge_push(answers, terms.member);
  if (finding.verdict == Verdict::kWait && !silence.empty()) finding.why += " (" + silence + ")";
  // The first server has lost the push. The others abort it before this server does, so that no server can commit it
  // later.
  const PushAnswer& first = answers.front();
  if (finding.verdict != Verdict::kAbort || !first.answered || first.state) return finding;
  for (size_t i = 0; i < terms.members.size(); ++i)
    if (i != terms.member && !ask(i, "POST", "abort").ok())
      return {Verdict::kWait, "the server that decides has lost it, and another one does not abort it"};
  return finding;
}

void PushReconciler::decide(const PushRecord& record, const PushPlace& place, registry::ServedModel& served) {
  const std::string& id = record.terms.id;
  const PushFinding finding = ask_members(record);
  if (finding.verdict == Verdict::kWait) {
    if (!record.in_doubt)
      log_warn(
          "model {} version {}: push {} expired, and another server may have committed it: {}. Its weights stay "
          "staged until that is known, or sconce weights reconcile decides",
          record.model, record.version, id, printable(finding.why));
    return;
  }
  const ModelClaims::Claim claim(rollout_.claims, served, "push " + id + " is being reconciled", {},
                                 ModelClaims::By::kServer);
  const bool commit = finding.verdict == Verdict::kCommit;
  log_warn("model {} version {}: push {} expired and is {}: {}", record.model, record.version, id,
           commit ? "committed" : "aborted", finding.why);
  if (commit)
    publish_push(rollout_, place, served, id, {"the other servers of the push", id});
  else
    drop_push(rollout_, place, served.model(), id, finding.why);
}

}  // namespace sconce::server::rollout
