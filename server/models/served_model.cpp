#include "server/models/served_model.h"

#include <csignal>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/log.h"
#include "server/models/documents.h"
#include "server/signature/body_bound.h"

namespace sconce::server {
namespace {

std::atomic<bool> restart{false};

std::chrono::nanoseconds inline_limit(const ModelInterface& interface, const ModelConfig& config,
                                      std::chrono::nanoseconds limit) {
  // A model that writes its buffers stays on its lane, because its outputs must be read before the next run. One that
  // uses several threads stays there because its lane has them.
  const bool possible = !interface.mutates_constants && interface.spec.threads <= 1 && config.threads <= 1;
  return possible ? limit : std::chrono::nanoseconds(0);
}

}  // namespace

ServedModel::ServedModel(ModelInterface interface, std::shared_ptr<Model> model, const ModelConfig& config,
                         AlarmClock& clock, std::shared_ptr<Statistics> statistics,
                         std::chrono::nanoseconds inline_below, std::shared_ptr<KeptWeights> kept,
                         std::shared_ptr<Golden> golden)
    : interface_(std::move(interface)),
      model_(std::move(model)),
      statistics_(std::move(statistics)),
      most_sets_(config.sets),
      sets_(config.sets > 0 ? std::make_unique<ModelSets>(*model_, config.routes) : nullptr),
      replicas_(model_->info().replicas),
      inline_policy_(inline_limit(interface_, config, inline_below), batch_policy(interface_, config).max_rows > 1),
      batcher_(
          interface_.name, batch_policy(interface_, config), [m = model_.get()](RunRequest& run) { m->submit(run); },
          clock, inline_policy_, model_->info().replicas),
      config_json_(config_document(interface_, batcher_.policy(), config.replicas, config.devices.front())),
      // Without checks of sizes, no input is known to be too large.
      most_body_bytes_(config.check_inputs ? server::most_body_bytes(interface_) : UINT64_MAX),
      guard_{config.guard, config.guard_errors, config.guard_nan, config.guard_p99},
      device_fault_(config.device_fault),
      require_label_(config.require_label),
      kept_(std::move(kept)),
      golden_(std::move(golden)),
      shadow_(std::make_unique<Shadow>(
          *model_, interface_, answers_, [this] { return batcher_.waiting(); }, config.shadow,
          static_cast<uint64_t>(config.shadow_memory))) {}

std::shared_ptr<Recording> ServedModel::recording() const {
  const MutexLock lock(recording_mutex_);
  return recording_;
}

void ServedModel::record(std::shared_ptr<Recording> recording, const std::shared_ptr<Recording>& before) {
  const MutexLock lock(recording_mutex_);
  SCONCE_CHECK(recording_ == before, kBusy, "another recording of the model was begun");
  recording_ = std::move(recording);
}

ModelStatistics ServedModel::statistics_now() const {
  return {interface_.name, interface_.version, statistics_->totals(), model_->info().constant_bytes,
          sets_ ? sets_->counts() : std::vector<ModelSets::Count>()};
}

std::string ServedModel::why_held() const {
  const WeightSetInfo active = model_->weight_sets().front();
  if (!active.missing.empty())
    return "the package brings no weights and constant '" + excerpt(active.missing) + "' has not been given";
  if (require_label_.empty() || active.label == require_label_) return {};
  return "the label of its weights is '" + excerpt(active.label) + "', require_label is '" + excerpt(require_label_) +
         "'";
}

bool ServedModel::run_here(size_t bytes) noexcept {
  // A model that runs on other threads would block this one. Waiting requests go first.
  return model_->runs_on_caller() && batcher_.waiting() == 0 && inline_policy_.run_inline(bytes) &&
         batcher_.acquire_permit();
}

void ServedModel::ran_here(std::chrono::nanoseconds compute, size_t bytes) noexcept {
  if (compute.count() > 0) inline_policy_.ran(compute, 1, false, bytes);
  batcher_.release_permit();
  failed();
}

bool ServedModel::failed() noexcept {
  if (!model_->failed()) [[likely]]
    return false;
  if (failure_said_.exchange(true)) return true;
  log_error("model {} version {} cannot run any more: its devices are lost to this process{}", interface_.name,
            interface_.version,
            device_fault_ == DeviceFault::kStay  ? "; it is not ready from now on"
            : device_fault_ == DeviceFault::kEnd ? ", which ends"
                                                 : ", which starts again");
  if (device_fault_ == DeviceFault::kStay) return true;
  if (device_fault_ == DeviceFault::kRestart) restart = true;
  std::raise(SIGTERM);
  return true;
}

bool restart_wanted() noexcept { return restart; }

}  // namespace sconce::server
