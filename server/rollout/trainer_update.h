// TrainerUpdate: a weight update whose tensors a trainer sends in one or several requests; at the end it is published.
//
// Used by one thread at a time. If it fails, or is destroyed before it is published, its staged set is dropped, and the
// served set is unchanged.
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

namespace sconce::server::rollout {

struct Rollout;

class TrainerUpdate {
 public:
  // Claims the model. kBusy; kUnavailable at shutdown.
  TrainerUpdate(Rollout& rollout, std::shared_ptr<registry::ServedModel> served, UpdateOptions options);
  ~TrainerUpdate();
  TrainerUpdate(const TrainerUpdate&) = delete;
  TrainerUpdate& operator=(const TrainerUpdate&) = delete;

  // Copies the values, which may be freed after the call. Errors of stage_tensors(). opening: the time for opening
  // them.
  void add(std::span<const NamedTensor> tensors, std::chrono::steady_clock::duration opening);
  // Likewise from files. Errors of stage_file().
  void add(WeightFile& file, const std::string& name);
  // Publishes the added tensors. label: as in UpdateOptions. Returns the weight version.
  uint64_t publish(std::string label);
  // Aborts the update. reason: for the log and the operation.
  void give_up(const std::string& reason);
  // kCancelled if the operation was cancelled, kUnavailable if the model was unloaded or replaced.
  void check() const;

 private:
  template <class Work>
  void guarded(const Work& work);
  void fail(Failure failure);

  Rollout& rollout_;
  const std::shared_ptr<registry::ServedModel> served_;
  std::optional<ModelClaims::Claim> claim_;
  std::unique_ptr<WeightUpdate> update_;  // null: ended
  std::shared_ptr<Operation> operation_;
  size_t entries_ = 0;
};

}  // namespace sconce::server::rollout
