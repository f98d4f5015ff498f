// Runner::Update: a weight update from begin_update() until its set is staged.
#pragma once

#include <memory>
#include <optional>

#include "sconce/weights.h"
#include "src/device/file_source.h"
#include "src/device/tensor_source.h"
#include "src/runner/runner.h"

namespace sconce::runner {

class Runner::Update final : public WeightUpdate, public FileTaker, public TensorTaker {
 public:
  Update(Runner& runner, UpdateOptions options, std::shared_ptr<void> owner);
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
  Staging& staging(const char* what);

  std::shared_ptr<void> owner_;  // destroyed last: it may own the runner
  Runner& runner_;
  UpdateOptions options_;
  std::optional<Turn> turn_;
  std::optional<Staging> staging_;
  std::shared_ptr<const WeightSet> base_;  // of a named set that starts from another
  bool finished_ = false;
};

}  // namespace sconce::runner
