// Weights below weights_dir as trainers name them: a file, or a folder in Hugging Face's layout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sconce/weight_sources.h"
#include "server/rollout/work/weights_dir.h"

namespace sconce::server::rollout {

class ModelFolder {
 public:
  // path: relative to `directory`, or absolute and below it. A folder has model.safetensors, or shards and
  // model.safetensors.index.json, which names them. Errors of WeightsFile; kCorruptPackage if the index names a tensor
  // that its shard does not have.
  ModelFolder(const std::string& directory, const std::string& path);

  WeightFile& weights() noexcept { return *weights_; }

 private:
  std::vector<std::unique_ptr<WeightsFile>> files_;  // own the descriptors under which weights_ was opened
  std::unique_ptr<WeightFile> weights_;
};

}  // namespace sconce::server::rollout
