// ModelWeights: the weights of a served model of a package: its named sets, their store, and the validators of new
// weights. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/registry/served_model.h"
#include "server/scheduling/model_sets.h"
#include "server/support/config.h"
#include "server/weights/store/weight_store.h"
#include "server/weights/validation/golden.h"
#include "server/weights/validation/guard_counts.h"
#include "server/weights/validation/shadow.h"

namespace sconce::server::weights {
class Recording;
}  // namespace sconce::server::weights

namespace sconce::server::registry {

class ModelWeights {
 public:
  // served, model: outlive the object. stored: null without a store. golden: null without golden requests.
  ModelWeights(ServedModel& served, Model& model, const ModelConfig& config,
               std::shared_ptr<weights::StoredWeights> stored, std::shared_ptr<weights::Golden> golden);

  Model& model() const noexcept { return model_; }
  // Null: the model has no named sets.
  scheduling::ModelSets* sets() const noexcept { return sets_.get(); }
  int64_t most_sets() const noexcept { return most_sets_; }
  // Whether it has named sets that would be lost with it.
  bool has_own_sets() const { return sets_ && !sets_on_disk_ && !model_.named_sets().empty(); }
  // The weight version at load time.
  uint64_t first_weight_version() const noexcept { return first_weight_version_; }
  // Store of its published sets; null: none.
  const std::shared_ptr<weights::StoredWeights>& stored() const noexcept { return stored_; }
  // Why its active set must not be served: a constant has no value, or the label is not require_label. Empty: it may be
  // served.
  std::string why_held() const;

  // The golden requests that new weights must pass; null: none.
  const std::shared_ptr<weights::Golden>& golden() const noexcept { return golden_; }
  // Runs live requests also on the staged set.
  weights::Shadow& shadow() noexcept { return shadow_; }
  // The guard of newly published weights, unless a request overrides it.
  const weights::GuardBounds& guard() const noexcept { return guard_; }
  // The last recording of its answers; null: none.
  std::shared_ptr<weights::Recording> recording() const;
  // kBusy unless the last recording is `before`.
  void record(std::shared_ptr<weights::Recording> recording, const std::shared_ptr<weights::Recording>& before);

 private:
  Model& model_;
  const int64_t most_sets_;
  const bool sets_on_disk_;
  const uint64_t first_weight_version_;
  const std::unique_ptr<scheduling::ModelSets> sets_;
  const std::string require_label_;
  const std::shared_ptr<weights::StoredWeights> stored_;
  const std::shared_ptr<weights::Golden> golden_;
  const weights::GuardBounds guard_;
  mutable Mutex recording_mutex_;
  std::shared_ptr<weights::Recording> recording_ SCONCE_GUARDED_BY(recording_mutex_);
  weights::Shadow shadow_;
};

}  // namespace sconce::server::registry
