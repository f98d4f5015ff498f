// SetWeights: the stored constants of a set as a source of weights.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/weight_sources.h"
#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

class SetWeights final : public WeightSetFile {
 public:
  // `table` outlives this. `check` throws if values that were read may be wrong. `owner` is kept until the end.
  SetWeights(const ConstantTable& table, std::shared_ptr<const ConstantSet> set, WeightSetInfo info,
             std::function<void()> check, std::shared_ptr<const void> owner);

  const WeightSetInfo& info() const noexcept override { return info_; }
  const std::string& digest() override;
  std::span<const std::byte> in_place(size_t entry) const noexcept override;
  void read(size_t entry, std::span<std::byte> out) override;
  void check_whole() override { check_(); }

 private:
  // The elements from number `begin` on, row-major, as many as `out` holds.
  void gather(const Tensor& tensor, int64_t begin, std::span<std::byte> out);

  std::shared_ptr<const void> owner_;  // destroyed last: it has the table
  const ConstantTable& table_;
  const std::shared_ptr<const ConstantSet> set_;
  const WeightSetInfo info_;
  const std::function<void()> check_;
  std::string digest_;
  std::vector<const Tensor*> tensors_;  // by entry
  size_t current_ = SIZE_MAX;
  uint64_t position_ = 0;  // bytes of the current entry that were read
  StoragePtr pinned_;      // a device's bytes come through it
};

}  // namespace sconce::runner
