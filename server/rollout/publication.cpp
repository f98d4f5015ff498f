#include "server/rollout/publication.h"

#include <functional>
#include <optional>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/rollout/push_api.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/weights/store/peer_weights.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

// The guard of the published set; window zero: none.
weights::GuardBounds bounds_for(const registry::ServedModel& served, const GuardWish& wish) {
  weights::GuardBounds bounds = served.weights().guard();
  bounds.window = wish.window.value_or(bounds.window);
  bounds.errors = wish.errors.value_or(bounds.errors);
  bounds.nan = wish.nan.value_or(bounds.nan);
  bounds.p99 = wish.p99.value_or(bounds.p99);
  return bounds;
}

// The push that this publication commits or undoes, in the form that is stored with the set.
std::optional<weights::StoredPush> push_note(const Rollout& rollout, const registry::ServedModel& served,
                                             const PublishOptions& options, PushState state, uint64_t weight_version) {
  const scheduling::ModelSignature& interface = served.interface();
  std::optional<PushRecord> record = rollout.pushes.find(interface.name, interface.version, options.push);
  if (!record) return std::nullopt;
  record->state = state;
  record->weight_version = weight_version;
  return note_of(*record);
}

// The set is already published, so this must not throw. Returns whether the set is stored.
bool store(registry::ServedModel& served, weights::StoredWeights& stored, const PublishOptions& options,
           const std::function<weights::StoredWeights::Notes()>& notes) SCONCE_REQUIRES(stored.write_mutex()) {
  const scheduling::ModelSignature& interface = served.interface();
  std::string problem = "store=false was asked for";
  if (!options.store) {
    succeeds([&] { stored.report(stored.status().weight_version, problem); });
    return false;
  }
  const bool told = succeeds([&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS {  // the caller has locked the store
    problem = stored.store(served.model().open_weights(WeightState::kActive), notes());
    if (!problem.empty())
      log_error("model {} version {}: weights are not stored: {}", interface.name, interface.version,
                printable(problem));
  });
  if (!told) succeeds([&] { stored.note("no memory"); });
  return told && problem.empty();
}

bool has_complete_previous(const Model& model) {
  const std::vector<WeightSetInfo> sets = model.weight_sets();
  return sets.size() > 1 && sets[1].state == WeightState::kPrevious && sets[1].missing.empty();
}

// The set is already published, so this must not throw.
void guard(Rollout& rollout, registry::ServedModel& served, const Published& published,
           const weights::GuardBounds& bounds, const std::string& push) {
  if (bounds.window.count() == 0) return;
  const scheduling::ModelSignature& interface = served.interface();
  const std::string problem = problem_of([&] {
    SCONCE_CHECK(has_complete_previous(served.model()), kFailedPrecondition,
                 "there is no complete previous set to roll back to");
    const auto shared = rollout.repository.snapshot()->loaded(interface.name, std::to_string(interface.version));
    if (shared.get() != &served) return;
    rollout.guards.begin(shared, {published.weight_version, bounds, bounds.window, push, published.stored, false});
  });
  if (!problem.empty())
    succeeds([&] {
      log_error("model {} version {}: weight version {} is not watched: {}", interface.name, interface.version,
                published.weight_version, printable(problem));
    });
}

void tell(Rollout& rollout, const registry::ServedModel& served, const char* event, uint64_t before,
          const weights::PublishedBy& by, const PublishOptions& options, const std::string& set) {
  succeeds([&] {
    AuditEntry entry = audit_of(event, rollout, served, WeightState::kActive);
    entry.before = before;
    entry.set = set;
    entry.push = options.push;
    entry.reason = options.reason;
    entry.server = by.peer;
    rollout.audit.add(entry);
  });
}

// A publication and its parameters.
struct Publication {
  const char* event;                 // for the audit log
  PushState push_state;              // of the push that it commits or undoes
  weights::GuardBounds bounds = {};  // window zero: no guard
  std::string set = {};              // a named set; empty: none
};

template <class Commit>
Published publish(Rollout& rollout, registry::ServedModel& served, const weights::PublishedBy& by,
                  const PublishOptions& options, const Publication& what, const Commit& commit) {
  Published published;
  const uint64_t before = served.model().weight_version();
  if (const std::shared_ptr<weights::StoredWeights>& stored = served.weights().stored()) {
    const MutexLock lock(stored->write_mutex());
    check_served(rollout, served);
    published.weight_version = commit(served.model());
    published.stored = store(served, *stored, options, [&] {
      weights::StoredWeights::Notes notes{by};
      if (what.bounds.window.count() > 0 && has_complete_previous(served.model()))
        notes.guard = {what.bounds, what.bounds.window, options.push, weights::instance_name()};
      if (!options.push.empty())
        notes.push = push_note(rollout, served, options, what.push_state, published.weight_version);
      return notes;
    });
  } else {
    published.weight_version = commit(served.model());
  }
  succeeds([&] { rollout.repository.weights_changed(served); });
  tell(rollout, served, what.event, before, by, options, what.set);
  guard(rollout, served, published, what.bounds, options.push);
  return published;
}

}  // namespace

StagedSet::~StagedSet() {
  if (model_) succeeds([this] { model_->abort_weights(); });
}

PublishOptions publish_options(const http::Query& query) {
  PublishOptions options;
  // "keep" is the former name, deprecated.
  for (const char* const name : {"keep", "store"})
    if (query.text(name)) options.store = query.flag(name);
  ModelConfig config;
  const auto read = [&](const char* key, const auto& value, auto& wish) {
    const auto text = query.text(key);
    if (!text) return;
    set_model_setting(config, key, *text, "of the request");
    wish = config.*value;
  };
  read("guard", &ModelConfig::guard, options.guard.window);
  read("guard_errors", &ModelConfig::guard_errors, options.guard.errors);
  read("guard_nan", &ModelConfig::guard_nan, options.guard.nan);
  read("guard_p99", &ModelConfig::guard_p99, options.guard.p99);
  return options;
}

Published publish_staged(Rollout& rollout, registry::ServedModel& served, const weights::PublishedBy& by,
                         const PublishOptions& options) {
  return publish(rollout, served, by, options, {"committed", PushState::kCommitted, bounds_for(served, options.guard)},
                 [](Model& model) { return model.commit_weights(); });
}

Published publish_previous(Rollout& rollout, registry::ServedModel& served, const weights::PublishedBy& by,
                           const PublishOptions& options) {
  return publish(rollout, served, by, options, {options.push.empty() ? "rolled_back" : "undone", PushState::kUndone},
                 [](Model& model) { return model.rollback_weights(); });
}

Published publish_set(Rollout& rollout, registry::ServedModel& served, const std::string& name,
                      const weights::PublishedBy& by, const PublishOptions& options) {
  return publish(rollout, served, by, options,
                 {"promoted", PushState::kCommitted, bounds_for(served, options.guard), name},
                 [&](Model& model) { return model.promote_set(name); });
}

void set_active_version(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
                        uint64_t weight_version) {
  Model& model = served->model();
  const uint64_t before = model.weight_version();
  if (weight_version == before) return;
  SCONCE_CHECK(weight_version > before, kBusy, "weight version ", before,
               " is active, and numbers only grow: it cannot be ", weight_version);
  rollout.guards.check_over(*served);
  if (const std::shared_ptr<weights::StoredWeights>& stored = served->weights().stored()) {
    const MutexLock lock(stored->write_mutex());
    check_served(rollout, *served);
    stored->set_weight_version(model.weights_digest(WeightState::kActive), weight_version);
    model.set_weight_version(weight_version);
  } else {
    model.set_weight_version(weight_version);
  }
  rollout.pushes.version_changed(place_of(served), {}, before, weight_version);
  succeeds([&] {
    AuditEntry entry = audit_of("version_set", rollout, *served, WeightState::kActive);
    entry.before = before;
    rollout.audit.add(entry);
  });
}

}  // namespace sconce::server::rollout
