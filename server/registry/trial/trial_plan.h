// Plans the trials of a model:
//
//   before it is served | a warm-up run, outputs that the package does not describe (registry/trial/load_trial.h)
//   while it is served  | the batch invariance check, if independence of rows is proved (registry/trial/row_checks.h)
//
// There are no trials for a model on a device, or if trial_timeout is 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/model.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/trial/trial_request.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"

namespace sconce::server::registry {

// From this size of constants, packing them delays a request noticeably.
inline constexpr uint64_t kSlowWeights = uint64_t{1} << 20;

// program: as in TrialSettings.
TrialSettings trial_settings(const std::filesystem::path& program, const ModelConfig& config);

// The task of a child before the model is served; nullopt: none.
std::optional<TrialRequest> trial_before(const PackageEntry& package, const ModelConfig& config);
// The task of a child while the model is served, by an interface with observed outputs; nullopt: none, because no proof
// allows batching.
std::optional<TrialRequest> trial_while_served(const PackageEntry& package, const scheduling::ModelSignature& interface,
                                               const ModelConfig& config);

}  // namespace sconce::server::registry
