#include "server/registry/package_model.h"

#include <utility>

#include "server/registry/documents.h"
#include "server/scheduling/signature/body_bound.h"
#include "server/support/log.h"
#include "server/support/process/end_signals.h"

namespace sconce::server::registry {
namespace {

std::atomic<bool> restart{false};

std::chrono::nanoseconds inline_limit(const scheduling::ModelSignature& interface, const ModelConfig& config,
                                      std::chrono::nanoseconds limit) {
  // A model that writes its buffers stays on its replica thread, because its outputs must be read before the next run.
  // A model with several threads stays there because the replica thread owns them.
  const bool possible = !interface.mutates_constants && interface.spec.threads <= 1 && config.threads <= 1;
  return possible ? limit : std::chrono::nanoseconds(0);
}

// The size limit of a body: the maximum for its inputs, and for the prompt of a decode loop. Without size checks, no
// input is known to be too large.
uint64_t body_limit(const scheduling::ModelSignature& interface, const ModelConfig& config,
                    const scheduling::LoopPlan* loop) {
  if (!config.check_inputs) return UINT64_MAX;
  const uint64_t inputs = scheduling::most_body_bytes(interface);
  constexpr uint64_t kToken = 48;  // as text: the longest number, a separator and a line end
  const auto tokens = static_cast<uint64_t>(loop ? loop->most_prompt() : 0);
  return inputs > UINT64_MAX - tokens * kToken ? inputs : inputs + tokens * kToken;
}

}  // namespace

ServedModel::Basis PackageModel::basis_of(LoadedModel& loaded, const ModelConfig& config,
                                          std::shared_ptr<scheduling::Statistics> statistics,
                                          std::chrono::nanoseconds inline_below) {
  Basis basis{.interface = std::move(loaded.interface)};
  basis.policy = scheduling::batch_policy(basis.interface, config);
  basis.config_json = config_document(basis.interface, basis.policy, config, nullptr);
  basis.most_body_bytes = body_limit(basis.interface, config, loaded.loop.get());
  basis.inline_below = inline_limit(basis.interface, config, inline_below);
  basis.replicas = loaded.model->info().replicas;
  basis.submit = [model = loaded.model](scheduling::BatchRun& run) { model->submit(run); };
  basis.statistics = std::move(statistics);
  return basis;
}

PackageModel::PackageModel(LoadedModel loaded, const ModelConfig& config,
                           std::shared_ptr<scheduling::Statistics> statistics, TimerQueue& clock,
                           std::chrono::nanoseconds inline_below)
    : ServedModel(basis_of(loaded, config, std::move(statistics), inline_below), clock),
      model_(std::move(loaded.model)),
      device_fault_(config.device_fault),
      sequence_places_(scheduling::has_sequences(interface(), config) ? config.sequences : 0),
      host_(*model_),
      sequences_(scheduling::has_sequences(interface(), config)
                     ? std::make_unique<scheduling::Sequences>(interface().name, host_, policy(), config.sequence_idle,
                                                               clock, inline_policy(), replicas())
                     : nullptr),
      loops_(loaded.loop ? std::make_unique<ModelLoops>(*this, host_, std::move(loaded.loop), config, clock) : nullptr),
      weights_(
          std::make_unique<ModelWeights>(*this, *model_, config, std::move(loaded.stored), std::move(loaded.golden))) {}

bool PackageModel::run_here(size_t bytes) noexcept {
  // A model that runs on other threads would block this one.
  return model_->runs_on_caller() && may_run_here(bytes);
}

RunInfo PackageModel::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* weights,
                          bool device_outputs) {
  return model_->run(inputs, outputs, 0, weights, {}, device_outputs);
}

bool PackageModel::failed() noexcept {
  if (model_->code_failed()) [[unlikely]] {
    if (!failure_said_.exchange(true))
      log_error(
          "model {} version {} has failed: its code has faulted as often as max_code_faults allows, or lost as much "
          "memory "
          "as it may; load it again",
          interface().name, interface().version);
    return true;
  }
  if (!model_->failed()) [[likely]]
    return false;
  if (failure_said_.exchange(true)) return true;
  log_error("model {} version {} cannot run any more: its devices are lost to this process{}", interface().name,
            interface().version,
            device_fault_ == DeviceFault::kStay  ? "; it is not ready from now on"
            : device_fault_ == DeviceFault::kEnd ? ", which ends"
                                                 : ", which starts again");
  if (device_fault_ == DeviceFault::kStay) return true;
  if (device_fault_ == DeviceFault::kRestart) restart = true;
  end_process_in_order();
  return true;
}

bool restart_wanted() noexcept { return restart; }

}  // namespace sconce::server::registry
