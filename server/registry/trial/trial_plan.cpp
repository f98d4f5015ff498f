#include "server/registry/trial/trial_plan.h"

#include <algorithm>

#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/signature/output_probe.h"

namespace sconce::server::registry {
namespace {

const ModelSpec& spec_of(const PackageEntry& package) { return package.package->model(package.model); }

bool may_be_tried(const PackageEntry& package, const ModelConfig& config) {
  return config.trial_timeout.count() > 0 && spec_of(package).device_key != "cuda";
}

TrialRequest request_for(const PackageEntry& package, const ModelConfig& config) {
  TrialRequest request;
  request.model = package.model;
  request.threads = static_cast<int>(config.threads);
  request.op_libraries = config.op_libraries;
  request.check_inputs = config.check_inputs;
  request.weights = config.weights;
  request.weights_ignore = config.weights_ignore;
  request.outputs = scheduling::probes_outputs(
      scheduling::ModelSignature(package.name, package.file.version, spec_of(package)), DeviceType::kCpu);
  return request;
}

}  // namespace

TrialSettings trial_settings(const std::filesystem::path& program, const ModelConfig& config) {
  return {.program = program,
          .time = config.trial_timeout,
          .memory = static_cast<uint64_t>(std::max<int64_t>(config.trial_memory, 0))};
}

std::optional<TrialRequest> trial_before(const PackageEntry& package, const ModelConfig& config) {
  if (!may_be_tried(package, config)) return std::nullopt;
  TrialRequest request = request_for(package, config);
  // A child that is started for another reason makes the run of small models too.
  request.warm_up = config.warm_up && (request.outputs || spec_of(package).weights_bytes >= kSlowWeights);
  if (!request.warm_up && !request.outputs) return std::nullopt;
  return request;
}

std::optional<TrialRequest> trial_while_served(const PackageEntry& package, const scheduling::ModelSignature& interface,
                                               const ModelConfig& config) {
  if (!may_be_tried(package, config) || scheduling::rows_to_try(interface, config) <= 1) return std::nullopt;
  TrialRequest request = request_for(package, config);
  request.rows = {config.max_batch_size, config.preferred_batch_sizes};
  return request;
}

}  // namespace sconce::server::registry
