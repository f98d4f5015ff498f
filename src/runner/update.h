// StagedUpdate: an update of weights from begin_update() until its set is staged, or a named set is made.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sconce/weights.h"
#include "src/device/file_source.h"
#include "src/device/tensor_source.h"
#include "src/runner/set_runs.h"
#include "src/runner/weight_versions.h"

namespace sconce::runner {

class StagedUpdate final : public WeightUpdate, public FileTaker, public TensorTaker {
 public:
  // The errors of Model::begin_update(). `owner` owns the model, and is kept until the update is destroyed.
  StagedUpdate(const ModelCode& code, const ReplicaPool& pool, WeightVersions& versions, SetRuns& sets,
               UpdateOptions options, std::shared_ptr<void> owner);
  void declare(std::span<const WeightEntry> entries) override;
  std::span<std::byte> memory(size_t entry) override;
  void complete(size_t entry) override;
  void set_label(std::string label) override;
  void finish() override;
  bool takes(size_t entry) const override { return staging_ && staging_->takes(entry); }
  void take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick) override;
  bool takes(size_t entry, const Tensor& values) const override { return staging_ && staging_->takes(entry, values); }
  void take(std::span<const TensorPart> parts) override;

 private:
  bool is_named() const noexcept { return !options_.set.empty(); }
  Staging& staging(const char* what);

  const std::shared_ptr<void> owner_;  // destroyed last
  const ModelCode& code_;
  const ReplicaPool& pool_;
  WeightVersions& versions_;
  SetRuns& sets_;
  UpdateOptions options_;
  std::optional<WeightVersions::UpdateLock> lock_;
  std::optional<Staging> staging_;
  NamedSets::SetPtr base_;  // of a named set that starts from another
  bool finished_ = false;
};

}  // namespace sconce::runner
