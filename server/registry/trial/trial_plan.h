// What a model is tried for, and when:
//
//   before it is served | a warm-up run, what the package does not record of outputs (registry/trial/load_trial.h)
//   while it is served  | whether rows influence each other, where it is proved that they do not
//   (registry/trial/row_checks.h)
//
// Nothing is tried of a model on a device, or if trial_timeout is 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/trial/trial_request.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"

namespace sconce::server {

// Bytes of constants from which on packing them takes a request longer than moments.
inline constexpr uint64_t kSlowWeights = uint64_t{1} << 20;

// program: as TrialSettings has it.
TrialSettings trial_settings(const std::filesystem::path& program, const ModelConfig& config);

// What a child is to find out before the model is served; nullopt: nothing.
std::optional<TrialRequest> trial_before(const PackageEntry& package, const ModelConfig& config);
// What a child is to find out of the served model, by an interface that knows its outputs; nullopt: nothing, because
// no proof lets its requests share runs.
std::optional<TrialRequest> trial_while_served(const PackageEntry& package, const ModelSignature& interface,
                                               const ModelConfig& config);

}  // namespace sconce::server
