#include "server/rollout/push_api.h"

#include <algorithm>
#include <chrono>

#include "sconce/check.h"
#include "server/http/query.h"
#include "server/rollout/admin_api.h"
#include "server/rollout/push/push_terms.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/log.h"

namespace sconce::server::rollout {
namespace {

using Clock = PushLedger::Clock;
using Json = OrderedJson;

// Maximum wait for another request that works on the same model.
constexpr std::chrono::milliseconds kClaimPatience{10'000};

// Whether the model serves the set that the push, or its undo, published.
bool is_served(const PushRecord& record, const registry::ServedModel& served) {
  if (record.served.lock().get() != &served) return false;
  const std::string& set = record.terms.set;
  if (set.empty()) return served.model().weight_version() == record.weight_version;
  NamedSetInfo info;
  const bool there = succeeds([&] { info = served.model().named_set(set); });
  return there ? info.weight_version == record.weight_version : record.state == PushState::kUndone;
}

Json describe(const PushRecord& record, const registry::ServedModel& served) {
  Json json = {{"push", record.terms.id}, {"state", push_state_name(record.state)}};
  if (!record.terms.set.empty()) json["set"] = record.terms.set;
  if (!record.terms.label.empty()) json["label"] = record.terms.label;
  if (record.open()) {
    const std::chrono::duration<double> left = record.deadline - Clock::now();
    json["expires_in"] = record.in_doubt ? 0 : std::max(left.count(), 0.0);
    json["in_doubt"] = record.in_doubt;
  }
  if (record.weight_version != 0) {
    json["weight_version"] = record.weight_version;
    json["generation"] = record.weight_version;  // deprecated
    json["active"] = is_served(record, served);
  }
  if (!record.terms.members.empty()) {
    json["members"] = record.terms.members;
    json["member"] = record.terms.member;
  }
  return json;
}

// The JSON document of the model's sets and the push.
std::string told(Rollout& rollout, const PushPlace& place, const registry::ServedModel& served, const std::string& id) {
  std::string text;
  succeeds([&] {
    text = weights_text(rollout, served, false);
    if (const auto record = rollout.pushes.find(place.model, place.version, id)) {
      text.pop_back();
      text += ",\"push\":" + dump(describe(*record, served)) + "}";
    }
  });
  return text;
}

bool has_state(Rollout& rollout, const PushPlace& place, const std::string& id, PushState state) {
  const auto record = rollout.pushes.find(place.model, place.version, id);
  return record && record->state == state;
}

bool holds_set(PushState state) noexcept { return state == PushState::kStaged || state == PushState::kPrepared; }

// The event has already happened, so this must not throw.
void tell_set(Rollout& rollout, const registry::ServedModel& served, const PushRecord& record, uint64_t weight_version,
              const char* event, const char* words) {
  succeeds([&] {
    AuditEntry entry = audit_of(event, served);
    entry.weight_version = weight_version;
    entry.label = record.terms.label;
    entry.set = record.terms.set;
    entry.push = record.terms.id;
    rollout.audit.add(entry);
    log_info("model {} version {}: push {} {} set '{}', weight version {}", served.interface().name,
             served.interface().version, record.terms.id, words, record.terms.set, weight_version);
  });
}

Published publish_set_push(Rollout& rollout, const PushPlace& place, registry::ServedModel& served,
                           const PushRecord& record) {
  check_served(rollout, served);
  const Published published{served.model().commit_set(record.terms.set), false};
  rollout.pushes.committed(place, record.terms.id, published.weight_version);
  tell_set(rollout, served, record, published.weight_version, "set_filled", "fills");
  return published;
}

void log_end(const PushPlace& place, const std::string& id, const char* what) {
  log_info("model {} version {}: push {} {}", place.model, place.version, id, what);
}

}  // namespace

PushPlace place_of(const std::shared_ptr<registry::ServedModel>& served) {
  return {served->interface().name, served->interface().version, served};
}

void drop_held(Model& model, const std::string& set) { set.empty() ? model.abort_weights() : model.abort_set(set); }

std::vector<weights::StoredPush> pushes_of_sets(const Model& model) {
  std::vector<NamedSetInfo> infos = model.named_sets();
  std::sort(infos.begin(), infos.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
  std::vector<weights::StoredPush> pushes;
  for (const NamedSetInfo& info : infos) {
    std::optional<weights::StoredPush> push = weights::parse_push(info.note);
    if (!push || push->set != info.name) continue;
    push->weight_version = info.weight_version;
    push->stored = true;
    pushes.push_back(std::move(*push));
  }
  return pushes;
}

Published publish_push(Rollout& rollout, const PushPlace& place, registry::ServedModel& served, const std::string& id,
                       const weights::PublishedBy& by, PublishOptions options) {
  rollout.pushes.check_open(place, id);
  if (const auto record = rollout.pushes.find(place.model, place.version, id); record && !record->terms.set.empty())
    return publish_set_push(rollout, place, served, *record);
  options.push = id;
  const Published published = publish_staged(rollout, served, by, options);
  rollout.pushes.committed(place, id, published.weight_version);
  log_info("model {} version {} has new weights: weight version {}, push {}", place.model, place.version,
           published.weight_version, id);
  return published;
}

void tell_end(Rollout& rollout, const PushPlace& place, const std::string& id, const char* event,
              const std::string& why) {
  succeeds([&] {
    AuditEntry entry;
    entry.event = event;
    entry.model = place.model;
    entry.version = place.version;
    entry.push = id;
    entry.reason = why;
    rollout.audit.add(entry);
  });
}

void drop_push(Rollout& rollout, const PushPlace& place, Model& model, const std::string& id, const std::string& why) {
  const auto record = rollout.pushes.find(place.model, place.version, id);
  const std::optional<PushState> before = rollout.pushes.abort(place, id);
  if (before && holds_set(*before)) drop_held(model, record->terms.set);
  if (!before || *before > PushState::kPrepared) return;
  log_end(place, id, "was aborted");
  tell_end(rollout, place, id, "aborted", why);
}

std::string commit_push(Rollout& rollout, const AdminRequest& request, const std::string& id, PublishOptions options) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const PushPlace place = place_of(served);
  rollout.pushes.authorize(place, id, request.authorization);
  if (!has_state(rollout, place, id, PushState::kCommitted)) {
    rollout.pushes.check_open(place, id);
    const auto record = rollout.pushes.find(place.model, place.version, id);
    SCONCE_CHECK(record->terms.set.empty() || !options.guard.any(), kInvalidArgument,
                 "a named set is not watched: the active one is");
    const ModelClaims::Claim claim(rollout.claims, *served, "push " + id + " is being committed", kClaimPatience);
    // A repeated request must not commit twice.
    if (!has_state(rollout, place, id, PushState::kCommitted))
      publish_push(rollout, place, *served, id, published_by(request), options);
  }
  return told(rollout, place, *served, id);
}

std::string abort_push(Rollout& rollout, const AdminRequest& request, const std::string& id) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const PushPlace place = place_of(served);
  // An upload that still receives the set has claimed the model. It stops when it sees that the push has ended.
  std::optional<PushState> before;
  if (has_state(rollout, place, id, PushState::kReceiving)) before = rollout.pushes.abort(place, id);
  if (before == PushState::kReceiving) {
    log_end(place, id, "was aborted");
    tell_end(rollout, place, id, "aborted");
    succeeds(
        [&] { const ModelClaims::Claim over(rollout.claims, *served, "push " + id + " has ended", kClaimPatience); });
    return told(rollout, place, *served, id);
  }
  const ModelClaims::Claim claim(rollout.claims, *served, "push " + id + " is being aborted", kClaimPatience);
  // The set may have been staged just before the record was aborted.
  if (before && holds_set(*before))
    drop_held(served->model(), rollout.pushes.find(place.model, place.version, id)->terms.set);
  drop_push(rollout, place, served->model(), id);
  return told(rollout, place, *served, id);
}

std::string rollback_push(Rollout& rollout, const AdminRequest& request, const std::string& id,
                          PublishOptions options) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const PushPlace place = place_of(served);
  const ModelClaims::Claim claim(rollout.claims, *served, "push " + id + " is being undone", kClaimPatience);
  if (!has_state(rollout, place, id, PushState::kUndone)) {
    rollout.pushes.check_committed(place, id);
    Model& model = served->model();
    const auto record = rollout.pushes.find(place.model, place.version, id);
    const std::string& set = record->terms.set;
    SCONCE_CHECK(is_served(*record, *served), kBusy, "push ", id, " cannot be undone: weight version ",
                 set.empty() ? model.weight_version() : model.named_set(set).weight_version, " is active, not its ",
                 record->weight_version);
    if (!set.empty()) {
      const uint64_t weight_version = model.restore_set(set);
      rollout.pushes.undone(place, id, weight_version);
      tell_set(rollout, *served, *record, weight_version, "undone", "was undone, which restores");
      return told(rollout, place, *served, id);
    }
    options.push = id;
    const uint64_t weight_version = publish_previous(rollout, *served, published_by(request), options).weight_version;
    rollout.pushes.undone(place, id, weight_version);
    log_info("model {} version {}: push {} was undone, weight version {} is active", place.model, place.version, id,
             weight_version);
  }
  return told(rollout, place, *served, id);
}

namespace admin {

std::string pushes(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"push"});
  const auto wanted = query.text("push");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const PushPlace place = place_of(served);
  Json list = Json::array();
  for (const PushRecord& record : rollout.pushes.list(place))
    if (!wanted || record.terms.id == *wanted) list.push_back(describe(record, *served));
  return dump(Json{{"model", place.model},
                   {"version", std::to_string(place.version)},
                   {"weight_version", served->model().weight_version()},
                   {"generation", served->model().weight_version()},  // deprecated
                   {"pushes", std::move(list)}});
}

std::string prepare_push(Rollout& rollout, const AdminRequest& request) {
  const std::string id = push_id(http::Query(request.query, {"push"}).text("push").value_or(""));
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  rollout.pushes.prepare(place_of(served), id, Clock::now());
  rollout.pushes.authorize(place_of(served), id, request.authorization);
  return dump(describe(*rollout.pushes.find(served->interface().name, served->interface().version, id), *served));
}

std::string renew_push(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"push", "lease"});
  const std::string id = push_id(query.text("push").value_or(""));
  const auto lease = query.text("lease");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  rollout.pushes.renew(place_of(served), id, Clock::now(), lease ? parse_lease(*lease) : std::chrono::milliseconds{});
  rollout.pushes.authorize(place_of(served), id, request.authorization);
  return dump(describe(*rollout.pushes.find(served->interface().name, served->interface().version, id), *served));
}

}  // namespace admin

}  // namespace sconce::server::rollout
