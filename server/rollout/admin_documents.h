// The JSON documents of the admin port, built with nlohmann::json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/difference.h"
#include "sconce/model.h"
#include "server/rollout/work/guards.h"
#include "server/rollout/work/operation_log.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/json_document.h"
#include "server/weights/store/weight_store.h"
#include "server/weights/validation/golden.h"
#include "server/weights/validation/shadow.h"

namespace sconce::server::rollout {

// The name of a set in answers: its label, else its weight version.
std::string weights_name(uint64_t weight_version, const std::string& label);
std::string constants_document(const scheduling::ModelSignature& model, std::span<const ConstantSpec> constants);
struct WeightsState {
  std::string instance;  // of the server
  bool ready = false;
  std::string reason;                                    // why it is not ready
  std::optional<weights::StoredWeights::Status> stored;  // nullopt: no store
  std::optional<GuardRecord> guard;                      // the last guard of published weights
  std::optional<weights::GoldenVerdict> golden;          // the last verdict on any set
  std::optional<weights::Shadow::Report> shadow;         // of the staged set; nullopt: it has had no shadow
};
// Adds the members of a difference between values of the same shape; not_finite_*: names for the counts of NaN and
// infinity.
void add_difference(OrderedJson& json, const Difference& difference, const char* not_finite_a,
                    const char* not_finite_b);
// constants: from Model::weights_difference(); equal constants are only counted.
std::string difference_document(const scheduling::ModelSignature& model, WeightState to,
                                std::span<const TensorDifference> constants);
std::string weights_document(const scheduling::ModelSignature& model, std::span<const WeightSetInfo> sets,
                             std::span<const std::string> digests, const WeightsState& state);
// Without a guard, its state is "none".
std::string guard_document(const scheduling::ModelSignature& model, const std::optional<GuardRecord>& guard);
std::string replicas_document(const scheduling::ModelSignature& model, std::span<const ReplicaInfo> replicas);
std::string operation_document(const Operation& operation);
std::string operations_document(std::span<const std::shared_ptr<Operation>> operations);
// {"operation": "7"}
std::string accepted_document(const Operation& operation);

}  // namespace sconce::server::rollout
