// The weights that a loaded model starts with, before anybody asks it: those of a peer if they are newer than the kept
// ones, else the kept ones, else those of a file, else the package's own.
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

namespace sconce::server {

struct StartingModel {
  const std::string& name;
  int64_t version;
  Model& model;  // nobody else uses it yet
  const ModelConfig& config;
  StoredWeights* kept;              // null: nothing is kept
  const std::atomic<bool>& ending;  // ends the reading of a peer's weights
  const SignatureRule& signatures;
};

struct StartingWeights {
  // Why it must not be served: its kept sets do not fit, and weights_mismatch is refuse. Empty: it may be.
  std::string refused;
  uint64_t revision = 0;  // of the kept sets that were there
  // What is to be said once the model is served: which kept set serves, and what is wrong with kept sets.
  StoredWeights::Status kept;
  // Not 0: the newest kept set serves, under this number, with which it was kept.
  uint64_t generation = 0;
  // The watch over it that goes on. The set before it, to which it may go back, is the model's previous one.
  std::optional<KeptGuard> guard;
  // Processes ended again and again while the watched set served. So the set before it serves now.
  struct GoneBack {
    KeptGuard guard;
    uint64_t from = 0, to = 0;  // generations
    std::string reason;
  };
  std::optional<GoneBack> gone_back;
  std::vector<KeptPush> pushes;  // that have ended, oldest first
};

// For a model that could not be loaded: that this process ends, then, says nothing against the watched set.
void leave_watch(StoredWeights& kept);

// Throws if the file of setting `weights` cannot be used. What is wrong with peers and kept sets is logged.
StartingWeights start_weights(const StartingModel& start);

}  // namespace sconce::server
