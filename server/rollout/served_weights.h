// Finds the model of an admin request, and describes its weight sets for answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/registry/served_model.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server::rollout {

// The loaded model, whether it is ready or not serving. kNotFound, kUnavailable.
std::shared_ptr<registry::ServedModel> model_of(const Rollout& rollout, const AdminRequest& request);

// A request that raises a weight version, and identifies the weights by label or digest.
struct WantedVersion {
  uint64_t weight_version = 0;
  std::optional<std::string> label, digest;
};
WantedVersion wanted_version_of(const AdminRequest& request);  // kInvalidArgument

// kUnavailable if the model was unloaded or replaced; aborts work on it.
void check_served(const Rollout& rollout, const registry::ServedModel& served);

// The document of GET .../weights. digest: include the digest of each set, which reads all of its values.
std::string weights_text(const Rollout& rollout, const registry::ServedModel& served, bool digest);

// An event about a model's weights, for the audit log. The weight version is the currently active one.
AuditEntry audit_of(std::string_view event, const registry::ServedModel& served);
// Likewise about one of its sets, with its label and, if the log has a file, its digest. The digest needs all values of
// the set, which are read at most once.
AuditEntry audit_of(std::string_view event, const Rollout& rollout, const registry::ServedModel& served,
                    WeightState state);

}  // namespace sconce::server::rollout
