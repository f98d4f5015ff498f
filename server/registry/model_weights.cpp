#include "server/registry/model_weights.h"

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {

ModelWeights::ModelWeights(ServedModel& served, Model& model, const ModelConfig& config,
                           std::shared_ptr<weights::StoredWeights> stored, std::shared_ptr<weights::Golden> golden)
    : model_(model),
      most_sets_(config.sets),
      sets_on_disk_(!config.sets_folder.empty()),
      first_weight_version_(model.weight_version()),
      sets_(most_sets_ > 0 ? std::make_unique<scheduling::ModelSets>(model, config.routes) : nullptr),
      require_label_(config.require_label),
      stored_(std::move(stored)),
      golden_(std::move(golden)),
      guard_{config.guard, config.guard_errors, config.guard_nan, config.guard_p99},
      shadow_(
          model, served.interface(), served.answers(), [&served] { return served.queued(); }, config.shadow,
          static_cast<uint64_t>(config.shadow_memory)) {}

std::string ModelWeights::why_held() const {
  const WeightSetInfo active = model_.weight_sets().front();
  if (!active.missing.empty())
    return "the package brings no weights and constant '" + excerpt(active.missing) + "' has not been given";
  if (require_label_.empty() || active.label == require_label_) return {};
  return "the label of its weights is '" + excerpt(active.label) + "', require_label is '" + excerpt(require_label_) +
         "'";
}

std::shared_ptr<weights::Recording> ModelWeights::recording() const {
  const MutexLock lock(recording_mutex_);
  return recording_;
}

void ModelWeights::record(std::shared_ptr<weights::Recording> recording,
                          const std::shared_ptr<weights::Recording>& before) {
  const MutexLock lock(recording_mutex_);
  SCONCE_CHECK(recording_ == before, kBusy, "another recording of the model was begun");
  recording_ = std::move(recording);
}

}  // namespace sconce::server::registry
