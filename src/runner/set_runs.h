// SetRuns: runs with named sets, and how such a set is made.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/runner/sets/instantiation_times.h"
#include "src/runner/sets/named_sets.h"
#include "src/runner/weight_versions.h"

namespace sconce::runner {

class SetRuns {
 public:
  // The references outlive this. kInvalidArgument; kIo, if there is a folder.
  SetRuns(const ModelCode& code, const PackageWatch& files, ReplicaPool& pool, WeightVersions& versions,
          std::shared_ptr<const ConstantSet> packaged, const LoadOptions& options);

  // kNotFound if the model holds no named sets (LoadOptions::sets).
  NamedSets& named() const;
  // See sconce/model.h. `owner` owns the runner.
  std::vector<NamedSetInfo> list() const { return sets_ ? sets_->list() : std::vector<NamedSetInfo>(); }
  NamedSetsMemory memory() const { return sets_ ? sets_->memory() : NamedSetsMemory(); }
  std::string digest(std::string_view name) const;
  std::unique_ptr<WeightSetFile> open(std::string_view name, std::shared_ptr<const void> owner) const;
  uint64_t promote(std::string_view name);
  bool instantiates_quickly() const noexcept { return instantiation_times_.quick(); }

  // Runs with the set, by the slot's holder, who has pinned `active`.
  void run(ReplicaSlot& slot, const WeightVersion& active, const LoadedSet& set, const RunCall& call);
  // The set's values were packed by a run, which took memory.
  void packed() noexcept { packed_.store(true, std::memory_order_relaxed); }
  // Call this after a run, without its slot: it looks at the sets' memory after packed().
  void reconcile_packed() noexcept {
    if (packed_.load(std::memory_order_relaxed) && packed_.exchange(false)) reconcile(true);
  }
  // Updates the memory of named sets after other weights became active. If memory runs out, the activation still
  // stands. if_idle: as NamedSets::reconcile_if_idle().
  void reconcile(bool if_idle = false) noexcept;

  // Ends an update of the named set UpdateOptions::set, by the holder of the UpdateLock. base: the set that it starts
  // from; null: the active one.
  void finish(Staging& staging, const UpdateOptions& options, const LoadedSet* base);

 private:
  // A set as NamedSets keeps it.
  NamedSets::SetPtr make(std::string name, uint64_t number, std::shared_ptr<const ConstantSet> values) const;
  ModelInstance& instance_of(ReplicaSlot& slot, const WeightVersion& active, const LoadedSet& set);
  void drop_instances(const std::vector<NamedSets::SetPtr>& sets) noexcept;

  const ModelCode& code_;
  const PackageWatch& files_;
  ReplicaPool& pool_;
  WeightVersions& versions_;
  const size_t most_instances_;             // that a replica keeps
  InstantiationTimes instantiation_times_;  // of these
  std::atomic<bool> packed_{false};         // a run has packed values of a named set
  std::unique_ptr<NamedSets> sets_;         // null: the model holds none
};

}  // namespace sconce::runner
