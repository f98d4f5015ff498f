// TrainerUpdate: an update whose tensors a trainer brings, in one request or several; it ends by being published.
//
// Used by one thread at a time. If it fails, or is destroyed before it is published, what it staged is dropped, and the
// served set stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "server/registry/served_model.h"
#include "server/rollout/work/model_claims.h"
#include "server/rollout/work/operation_log.h"

namespace sconce::server {

struct Service;

class TrainerUpdate {
 public:
  // Claims the model. kBusy; kUnavailable while the server ends.
  TrainerUpdate(Service& service, std::shared_ptr<ServedModel> served, UpdateOptions options);
  ~TrainerUpdate();
  TrainerUpdate(const TrainerUpdate&) = delete;
  TrainerUpdate& operator=(const TrainerUpdate&) = delete;

  // Copies the values, which need not live longer than the call. The errors of stage_tensors().
  // opening: what it took to open them.
  void add(std::span<const NamedTensor> tensors, std::chrono::steady_clock::duration opening);
  // The same from files. The errors of stage_file().
  void add(WeightFile& file, const std::string& name);
  // Publishes what was added. `label`: as in UpdateOptions. Returns the generation.
  uint64_t publish(std::string label);
  // Ends the update. reason: for the log and the operation.
  void give_up(const std::string& reason);
  // kCancelled or kUnavailable if somebody cancelled it, or unloaded or replaced the model.
  void check() const;

 private:
  template <class Work>
  void guarded(const Work& work);
  void fail(Failure failure);

  Service& service_;
  const std::shared_ptr<ServedModel> served_;
  std::optional<ModelClaims::Claim> claim_;
  std::unique_ptr<WeightUpdate> update_;  // null: over
  std::shared_ptr<Operation> operation_;
  size_t entries_ = 0;
};

}  // namespace sconce::server
