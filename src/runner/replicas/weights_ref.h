// WeightsRef: the weights of a run, of a sequence or of a rehearsal: those of a version of the model's own weights, or
// those of a named set. Valid as long as that version or set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sconce/check.h"
#include "src/runner/replicas/weight_version.h"
#include "src/runner/sets/loaded_set.h"

namespace sconce::runner {

class WeightsRef {
 public:
  // set: null for those of the version.
  WeightsRef(const WeightVersion& version, const WeightSet* set) noexcept
      : version_(version), set_(static_cast<const LoadedSet*>(set)) {}

  // Null: they are the version's.
  const LoadedSet* set() const noexcept { return set_; }
  const std::shared_ptr<const ConstantSet>& values() const noexcept { return set_ ? set_->values : version_.values; }
  bool reads_package() const noexcept { return set_ ? set_->reads_package : version_.reads_package; }
  // As in RunInfo.
  uint64_t number() const noexcept {
    return set_ ? set_->weight_version() : version_.number.load(std::memory_order_relaxed);
  }
  const std::shared_ptr<const std::string>& label() const noexcept { return set_ ? set_->name() : version_.label; }

  // model: as LoadedSet::owner. kInvalidArgument for another model's set, kFailedPrecondition if a constant has no
  // value.
  void check(const void* model) const {
    if (set_) [[unlikely]] {
      SCONCE_CHECK(set_->owner == model, kInvalidArgument, "set '", *set_->name(), "' is another model's");
      SCONCE_CHECK(set_->missing.empty(), kFailedPrecondition, "set '", *set_->name(), "' has no value for constant '",
                   set_->missing, "'");
      return;
    }
    SCONCE_CHECK(version_.missing.empty(), kFailedPrecondition, "the package brings no weights and constant '",
                 version_.missing, "' has not been given");
  }

 private:
  const WeightVersion& version_;
  const LoadedSet* const set_;
};

}  // namespace sconce::runner
