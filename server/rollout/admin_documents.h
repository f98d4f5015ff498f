// The JSON documents of the admin port. Built with nlohmann.
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

namespace sconce::server {

// How answers name a set: its label, else its generation.
std::string weight_version(uint64_t generation, const std::string& label);
std::string constants_document(const ModelSignature& model, std::span<const ConstantSpec> constants);
struct WeightsState {
  std::string instance;  // of the server
  bool ready = false;
  std::string reason;                         // why it is not
  std::optional<StoredWeights::Status> kept;  // none: sets are not kept
  std::optional<GuardRecord> guard;           // the last watch over published weights
  std::optional<GoldenVerdict> golden;        // the last verdict, whichever set it was about
  std::optional<Shadow::Report> shadow;       // of the staged set; none: it has had no shadow
};
// The members of a difference, which is of values with the same shape; not_finite_*: what the counts of NaN and
// infinity are called.
void add_difference(OrderedJson& json, const Difference& difference, const char* not_finite_a,
                    const char* not_finite_b);
// digests: one for each set, or none.
// constants: as Model::weights_difference() has them; equal ones are only counted.
std::string difference_document(const ModelSignature& model, WeightState to,
                                std::span<const TensorDifference> constants);
std::string weights_document(const ModelSignature& model, std::span<const WeightSetInfo> sets,
                             std::span<const std::string> digests, const WeightsState& state);
// If nothing was watched, its state is "none".
std::string guard_document(const ModelSignature& model, const std::optional<GuardRecord>& guard);
std::string replicas_document(const ModelSignature& model, std::span<const ReplicaInfo> replicas);
std::string operation_document(const Operation& operation);
std::string operations_document(std::span<const std::shared_ptr<Operation>> operations);
// {"operation": "7"}
std::string accepted_document(const Operation& operation);

}  // namespace sconce::server
