#include "server/admin/publication.h"

#include <optional>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "sconce/weight_sources.h"
#include "server/admin/served_weights.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/http/query.h"

namespace sconce::server {
namespace {

// The set is published, so nothing here throws.
void keep(ServedModel& served, KeptWeights& kept, const PublishedBy& by, const PublishOptions& options)
    SCONCE_REQUIRES(kept.turn()) {
  const ModelInterface& interface = served.interface();
  std::string problem = "keep=false was asked for";
  if (!options.keep) {
    succeeds([&] { kept.report(kept.status().generation, problem); });
    return;
  }
  const bool told = succeeds([&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS {  // the caller has the turn
    problem = kept.keep(served.model().open_weights(WeightState::kActive), by);
    if (!problem.empty())
      log_error("model {} version {}: weights are not kept: {}", interface.name, interface.version, printable(problem));
  });
  if (!told) succeeds([&] { kept.note("no memory"); });
}

// The set is published, so nothing here throws.
void guard(Service& service, ServedModel& served, uint64_t generation, const PublishOptions& options) {
  const ModelInterface& interface = served.interface();
  GuardBounds bounds = served.guard();
  bounds.window = options.guard.window.value_or(bounds.window);
  bounds.errors = options.guard.errors.value_or(bounds.errors);
  bounds.nan = options.guard.nan.value_or(bounds.nan);
  bounds.p99 = options.guard.p99.value_or(bounds.p99);
  if (bounds.window.count() == 0) return;
  const std::string problem = problem_of([&] {
    const std::vector<WeightSetInfo> sets = served.model().weight_sets();
    SCONCE_CHECK(sets.size() > 1 && sets[1].state == WeightState::kPrevious && sets[1].missing.empty(),
                 kFailedPrecondition, "there is no complete previous set to roll back to");
    const auto shared = service.repository.snapshot()->loaded(interface.name, std::to_string(interface.version));
    if (shared.get() == &served) service.guards.begin(shared, generation, bounds, options.push);
  });
  if (!problem.empty())
    succeeds([&] {
      log_error("model {} version {}: generation {} is not watched: {}", interface.name, interface.version, generation,
                printable(problem));
    });
}

void tell(Service& service, const ServedModel& served, const char* event, uint64_t before, const PublishedBy& by,
          const PublishOptions& options, const std::string& set) {
  succeeds([&] {
    AuditEntry entry = audit_of(event, service, served, WeightState::kActive);
    entry.before = before;
    entry.set = set;
    entry.push = options.push;
    entry.reason = options.reason;
    entry.server = by.peer;
    service.audit.add(entry);
  });
}

// event: for the audit log. set: a named one.
template <class Commit>
Published publish(Service& service, ServedModel& served, const PublishedBy& by, const PublishOptions& options,
                  const char* event, const std::string& set, const Commit& commit) {
  Published published;
  const uint64_t before = served.model().generation();
  if (const std::shared_ptr<KeptWeights>& kept = served.kept()) {
    const MutexLock turn(kept->turn());
    check_served(service, served);
    published.generation = commit(served.model());
    keep(served, *kept, by, options);
  } else {
    published.generation = commit(served.model());
  }
  succeeds([&] { service.repository.weights_changed(served); });
  tell(service, served, event, before, by, options, set);
  return published;
}

}  // namespace

StagedSet::~StagedSet() {
  if (model_) succeeds([this] { model_->abort_weights(); });
}

PublishOptions publish_options(const Query& query) {
  PublishOptions options;
  options.keep = !query.text("keep") || query.flag("keep");
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

Published publish_staged(Service& service, ServedModel& served, const PublishedBy& by, const PublishOptions& options) {
  const Published published =
      publish(service, served, by, options, "committed", "", [](Model& model) { return model.commit_weights(); });
  guard(service, served, published.generation, options);
  return published;
}

Published publish_previous(Service& service, ServedModel& served, const PublishedBy& by,
                           const PublishOptions& options) {
  const char* const event = options.push.empty() ? "rolled_back" : "undone";
  return publish(service, served, by, options, event, "", [](Model& model) { return model.rollback_weights(); });
}

Published publish_set(Service& service, ServedModel& served, const std::string& name, const PublishedBy& by,
                      const PublishOptions& options) {
  const Published published =
      publish(service, served, by, options, "promoted", name, [&](Model& model) { return model.promote_set(name); });
  guard(service, served, published.generation, options);
  return published;
}

}  // namespace sconce::server
