#include "server/rollout/sets_api.h"

#include <algorithm>

#include "sconce/check.h"
#include "sconce/model.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/rollout/golden_api.h"
#include "server/rollout/publication.h"
#include "server/rollout/push_api.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "server/support/time_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout::admin {
namespace {

using Json = OrderedJson;

std::shared_ptr<registry::ServedModel> served_of(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  return model_of(rollout, request);
}

scheduling::ModelSets& sets_of(const registry::ServedModel& served) {
  const registry::ModelWeights* const weights = served.find_weights();
  scheduling::ModelSets* const sets = weights ? weights->sets() : nullptr;
  SCONCE_CHECK(sets, kNotFound, "model '", served.interface().name, "' holds no named sets (setting sets)");
  return *sets;
}

Json described(const NamedSetInfo& info, std::span<const scheduling::ModelSets::Count> counts) {
  Json json = {{"name", info.name},
               {"state", info.on_disk ? "disk" : "memory"},
               {"weight_version", info.weight_version},
               {"generation", info.weight_version},  // deprecated
               {"label", info.label},
               {"bytes", info.bytes},
               {"own_bytes", info.own_bytes},
               {"packed_bytes", info.packed_bytes},
               {"replicas", info.replicas},
               {"since", time_text(info.since)},
               {"used", time_text(info.used)}};
  for (const scheduling::ModelSets::Count& count : counts) {
    if (count.name != info.name) continue;
    json["requests"] = count.success;
    json["failures"] = count.failures;
    json["inferences"] = count.rows;
    json["seconds"] = static_cast<double>(count.total_ns) * 1e-9;
  }
  return json;
}

Json routes_json(const scheduling::ModelSets& sets) {
  Json json = Json::object();
  for (const auto& [name, share] : sets.routes()) json[name] = share;
  return json;
}

std::string sets_text(const registry::ServedModel& served) {
  const registry::ModelWeights& weights = served.weights();
  const scheduling::ModelSets* const own = weights.sets();
  const NamedSetsMemory memory = weights.model().named_sets_memory();
  Json json = {{"model", served.interface().name}, {"version", std::to_string(served.interface().version)}};
  json["limit"] = weights.most_sets();
  json["bytes"] = memory.bytes;
  json["packed_bytes"] = memory.packed_bytes;
  json["limit_bytes"] = memory.limit;
  json["in_memory"] = memory.in_memory;
  json["on_disk"] = memory.on_disk;
  json["routes"] = own ? routes_json(*own) : Json::object();
  json["sets"] = Json::array();
  const std::vector<scheduling::ModelSets::Count> counts =
      own ? own->counts() : std::vector<scheduling::ModelSets::Count>();
  const std::vector<NamedSetInfo> infos = served.model().named_sets();
  for (const NamedSetInfo& info : infos) {
    // Both lists are sorted by name.
    const auto at =
        std::lower_bound(counts.begin(), counts.end(), info.name,
                         [](const scheduling::ModelSets::Count& c, const std::string& name) { return c.name < name; });
    const size_t found = at != counts.end() && at->name == info.name;
    json["sets"].push_back(described(info, std::span(counts).subspan(static_cast<size_t>(at - counts.begin()), found)));
  }
  return dump(json);
}

}  // namespace

std::string sets(Rollout& rollout, const AdminRequest& request) { return sets_text(*served_of(rollout, request)); }

std::string set(Rollout& rollout, const AdminRequest& request) {
  const bool digest = http::Query(request.query, {"digest"}).flag("digest");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const scheduling::ModelSets& own = sets_of(*served);
  const std::string of = digest ? served->model().set_digest(request.set) : std::string();
  Json json = described(served->model().named_set(request.set), own.counts());
  if (digest) json["digest"] = of;
  return dump(json);
}

std::string remove_set(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = served_of(rollout, request);
  sets_of(*served).remove(request.set);
  // The set is already removed, so this must not throw.
  succeeds([&] {
    AuditEntry entry = audit_of("set_removed", *served);
    entry.set = request.set;
    rollout.audit.add(entry);
  });
  log_info("model {} version {}: set '{}' is removed", served->interface().name, served->interface().version,
           request.set);
  return "{}";
}

std::string promote_set(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query,
                          {"store", "keep", "golden", "guard", "guard_errors", "guard_nan", "guard_p99"});
  const PublishOptions options = publish_options(query);
  const GoldenRule rule = golden_rule(query);
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  sets_of(*served);
  const ModelClaims::Claim claim(rollout.claims, *served, "its weights are being changed");
  rollout.guards.check_over(*served);
  require_good(rollout, *served, judge_set(*served, request.set, [&] { check_served(rollout, *served); }), rule);
  // As in staging: a rollback should not have to read the currently active set.
  if (rollout.audit.has_file()) succeeds([&] { (void)served->model().weights_digest(WeightState::kActive); });
  const uint64_t weight_version =
      publish_set(rollout, *served, request.set, published_by(request), options).weight_version;
  log_info("model {} version {} has new weights: weight version {}, those of set '{}'", served->interface().name,
           served->interface().version, weight_version, request.set);
  return weights_text(rollout, *served, false);
}

std::string set_version_of_set(Rollout& rollout, const AdminRequest& request) {
  const WantedVersion wanted = wanted_version_of(request);
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  sets_of(*served);
  Model& model = served->model();
  const std::string name = request.set;
  const NamedSetInfo before = model.named_set(name);
  SCONCE_CHECK(!wanted.label || *wanted.label == before.label, kBusy, "the label of set '", name, "' is '",
               excerpt(before.label), "', not '", excerpt(*wanted.label), "'");
  const std::string digest = wanted.digest ? model.set_digest(name) : std::string();
  SCONCE_CHECK(!wanted.digest || *wanted.digest == digest, kBusy, "the digest of set '", name, "' is ", digest,
               ", not ", excerpt(*wanted.digest));
  SCONCE_CHECK(wanted.weight_version >= before.weight_version, kBusy, "set '", name, "' has weight version ",
               before.weight_version, ", and numbers only grow: it cannot be ", wanted.weight_version);
  if (wanted.weight_version > before.weight_version) {
    check_served(rollout, *served);
    // Fails if the set has changed meanwhile.
    model.set_weight_version(name, before.weight_version, wanted.weight_version);
    rollout.pushes.version_changed(place_of(served), name, before.weight_version, wanted.weight_version);
    succeeds([&] {
      AuditEntry entry = audit_of("version_set", *served);
      entry.set = name;
      entry.label = before.label;
      entry.before = before.weight_version;
      entry.weight_version = wanted.weight_version;
      rollout.audit.add(entry);
    });
  }
  return dump(described(model.named_set(name), served->weights().sets()->counts()));
}

std::string routes(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = served_of(rollout, request);
  return dump(routes_json(sets_of(*served)));
}

std::string change_routes(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = served_of(rollout, request);
  scheduling::ModelSets& own = sets_of(*served);
  scheduling::ModelSets::Routes routes;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    const double share = json.number("a share");
    routes.emplace_back(key, share);
  });
  own.set_routes(std::move(routes));
  std::string text = dump(routes_json(own));
  succeeds([&] {
    AuditEntry entry = audit_of("routes_changed", *served);
    entry.routes = text;
    rollout.audit.add(entry);
  });
  log_info("model {} version {}: requests that name no set are routed by {}", served->interface().name,
           served->interface().version, text);
  return text;
}

}  // namespace sconce::server::rollout::admin
