#include "server/rollout/served_weights.h"

#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/rollout/admin_documents.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/weights/store/peer_weights.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

// Every JSON reader represents whole numbers up to this one exactly.
constexpr uint64_t kMaxWeightVersion = uint64_t{1} << 53;

}  // namespace

WantedVersion wanted_version_of(const AdminRequest& request) {
  const http::Query query(request.query, {});
  WantedVersion wanted;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    if (key == "weight_version" || key == "generation")
      wanted.weight_version = json.unsigned_integer("'weight_version'");
    else if (key == "label")
      wanted.label = json.string("'label'");
    else if (key == "digest")
      wanted.digest = json.string("'digest'");
    else
      SCONCE_FAIL(kInvalidArgument, "unknown member of the request: '", excerpt(key), "'");
  });
  SCONCE_CHECK(wanted.weight_version >= 1 && wanted.weight_version <= kMaxWeightVersion, kInvalidArgument,
               "'weight_version' must be a number from 1 to 2^53");
  SCONCE_CHECK(wanted.label || wanted.digest, kInvalidArgument, "'label' or 'digest' must identify the weights");
  return wanted;
}

std::shared_ptr<registry::ServedModel> model_of(const Rollout& rollout, const AdminRequest& request) {
  return rollout.repository.snapshot()->loaded(request.model, request.version);
}

void check_served(const Rollout& rollout, const registry::ServedModel& served) {
  const scheduling::ModelSignature& interface = served.interface();
  const auto catalog = rollout.repository.snapshot();
  SCONCE_CHECK(catalog->loaded(interface.name, std::to_string(interface.version)).get() == &served, kUnavailable,
               "the model was replaced while its weights were updated");
}

AuditEntry audit_of(std::string_view event, const registry::ServedModel& served) {
  AuditEntry entry;
  entry.event = event;
  entry.model = served.interface().name;
  entry.version = served.interface().version;
  entry.weight_version = served.model().weight_version();
  return entry;
}

AuditEntry audit_of(std::string_view event, const Rollout& rollout, const registry::ServedModel& served,
                    WeightState state) {
  AuditEntry entry = audit_of(event, served);
  const Model& model = served.model();
  for (const WeightSetInfo& set : model.weight_sets())
    if (set.state == state) entry.label = set.label;
  // Without libcrypto, the entry has no digest.
  if (rollout.audit.has_file()) succeeds([&] { entry.digest = model.weights_digest(state); });
  // A later rollback to the active set logs its digest, and should not have to read the set then.
  if (rollout.audit.has_file() && state == WeightState::kStaged)
    succeeds([&] { (void)model.weights_digest(WeightState::kActive); });
  return entry;
}

std::string weights_text(const Rollout& rollout, const registry::ServedModel& served, bool digest) {
  const std::vector<WeightSetInfo> sets = served.model().weight_sets();
  std::vector<std::string> digests;
  for (const WeightSetInfo& set : sets) {
    if (digest) digests.push_back(served.model().weights_digest(set.state));
  }
  const scheduling::ModelSignature& interface = served.interface();
  WeightsState state;
  state.instance = weights::instance_name();
  const auto catalog = rollout.repository.snapshot();
  const registry::Catalog::Version& version = catalog->find(interface.name, std::to_string(interface.version));
  state.ready = version.state == registry::Catalog::State::kReady && !rollout.draining;
  state.reason = version.held;
  registry::ModelWeights& weights = served.weights();
  if (weights.stored()) state.stored = weights.stored()->status();
  state.guard = rollout.guards.find(served);
  if (weights.golden()) state.golden = weights.golden()->last();
  weights::Shadow::Report shadow = weights.shadow().report();
  for (const WeightSetInfo& set : sets)
    if (shadow.summary && set.state == WeightState::kStaged && set.since == shadow.summary->since)
      state.shadow = std::move(shadow);
  return weights_document(interface, sets, digests, state);
}

}  // namespace sconce::server::rollout
