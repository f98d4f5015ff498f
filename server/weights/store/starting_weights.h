// The initial weights of a loaded model, in this order: a peer's, if they are newer than the stored ones; the stored
// ones; those of a file; the package's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/signing/signature_rule.h"
#include "server/support/config.h"
#include "server/weights/store/weight_store.h"

namespace sconce::server::weights {

struct StartingModel {
  const std::string& name;
  int64_t version;
  Model& model;  // not yet used by others
  const ModelConfig& config;
  StoredWeights* stored;            // null: no store
  const std::atomic<bool>& ending;  // aborts the download of a peer's weights
  const signing::SignatureRule& signatures;
};

struct StartingWeights {
  // Why the model must not be served: its stored sets do not fit, and weights_mismatch is refuse. Empty: it may be
  // served.
  std::string refused;
  uint64_t revision = 0;  // of the store when the weights were chosen
  // To be reported once the model is served: which stored set serves, and problems of stored sets.
  StoredWeights::Status stored;
  // Not 0: the newest stored set serves, under its stored weight version.
  uint64_t weight_version = 0;
  // The guard that continues. The set to roll back to is the model's previous one.
  std::optional<StoredGuard> guard;
  // The server crashed repeatedly while the guarded set served, so the previous set serves now.
  struct GoneBack {
    StoredGuard guard;
    uint64_t from = 0, to = 0;  // weight versions
    std::string reason;
  };
  std::optional<GoneBack> gone_back;
  std::vector<StoredPush> pushes;  // pushes that have ended, oldest first
};

// For a model that could not be loaded: records that the end of this process is no evidence against the guarded set.
void leave_watch(StoredWeights& stored);

// Throws if the file of setting `weights` cannot be used. Problems of peers and stored sets are logged.
StartingWeights start_weights(const StartingModel& start);

}  // namespace sconce::server::weights
