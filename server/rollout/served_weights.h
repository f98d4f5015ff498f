// The model that an administration request names, and what its sets of weights are answered as.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/registry/served_model.h"
#include "server/rollout/service.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server {

// Loaded, whether it is ready or waits for other weights. kNotFound, kUnavailable.
std::shared_ptr<ServedModel> model_of(const Service& service, const AdminRequest& request);

// A request that gives weights a larger number, and says by their label or digest which it means.
struct Renumbering {
  uint64_t generation = 0;
  std::optional<std::string> label, digest;
};
Renumbering renumbering_of(const AdminRequest& request);  // kInvalidArgument

// Stops what works on a model that was unloaded or replaced meanwhile: kUnavailable.
void check_served(const Service& service, const ServedModel& served);

// The document of GET .../weights. digest: with the digest of each set, which reads all of it.
std::string weights_text(const Service& service, const ServedModel& served, bool digest);

// What happens to a model's weights, for the audit log. The generation is the one that is active now.
AuditEntry audit_of(std::string_view event, const ServedModel& served);
// The same about one of its sets, with its label and, if the log has a file, its digest: reads the set's values, unless
// they were read for that before.
AuditEntry audit_of(std::string_view event, const Service& service, const ServedModel& served, WeightState state);

}  // namespace sconce::server
