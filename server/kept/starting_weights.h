// The weights that a loaded model starts with, before anybody asks it: those of a peer if they are newer than the kept
// ones, else the kept ones, else those of a file, else the package's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "sconce/model.h"
#include "server/base/config.h"
#include "server/kept/weight_store.h"

namespace sconce::server {

struct StartingModel {
  const std::string& name;
  int64_t version;
  Model& model;  // nobody else uses it yet
  const ModelConfig& config;
  KeptWeights* kept;                // null: nothing is kept
  const std::atomic<bool>& ending;  // ends the reading of a peer's weights
};

struct StartingWeights {
  // Why it must not be served: its kept sets do not fit, and weights_mismatch is refuse. Empty: it may be.
  std::string refused;
  uint64_t revision = 0;  // of the kept sets that were there
  // What is to be said once the model is served: which kept set serves, and what is wrong with kept sets.
  KeptWeights::Status kept;
};

// Throws if the file of setting `weights` cannot be used. What is wrong with peers and kept sets is logged.
StartingWeights start_weights(const StartingModel& start);

}  // namespace sconce::server
