// WeightVersions: the weights of a model that runs use, and those beside them, which are staged or were active before.
//
// A version is a published constant set with an instance per replica. A run pins the version that is active when it
// starts; publishing waits until no replica has the old one pinned. So runs do not wait for updates, and no run sees
// two sets.
//
// Thread-safe. Three locks, taken in this order, none by a request:
//   UpdateLock   held from an update's first step to its last; a string that names the holder, not a mutex, because an
//                update spans several calls
//   work_mutex_  makes instances, publishes, opens and closes slots
//   state_mutex_ what readers see of the versions; held for moments
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/constants/package_watch.h"
#include "src/runner/constants/staging.h"
#include "src/runner/replicas/replica_pool.h"
#include "src/runner/replicas/weight_version.h"
#include "src/runner/replicas/weights_ref.h"
#include "src/runner/sequence_runs.h"

namespace sconce::runner {

class WeightVersions {
 public:
  using Values = std::shared_ptr<const ConstantSet>;
  using Progress = std::function<void(int replica, bool ready)>;  // as in UpdateOptions

  // Makes the package's weights active. first: an instance over them for the first replica; null: there is none yet.
  // activated: is called after other weights became active, without a lock but the update's. The references outlive
  // this.
  WeightVersions(const ModelCode& code, const PackageWatch& files, ReplicaPool& pool, SequenceRuns& sequences,
                 Values packaged, std::unique_ptr<ModelInstance> first, std::function<void()> activated);
  WeightVersions(const WeightVersions&) = delete;
  WeightVersions& operator=(const WeightVersions&) = delete;

  // Admits one update at a time. kBusy names the one under way, or the set that waits for commit or abort.
  class UpdateLock {
   public:
    // `may_find_staged`: for the calls that end a staged set.
    UpdateLock(const WeightVersions& versions, std::string what, bool may_find_staged = false);
    ~UpdateLock();
    UpdateLock(const UpdateLock&) = delete;
    UpdateLock& operator=(const UpdateLock&) = delete;

   private:
    const WeightVersions& versions_;
  };

  // Keeps the version that is active now for a run of the slot's replica. Made by the slot's holder.
  class Pin {
   public:
    Pin(const WeightVersions& versions, ReplicaSlot& slot) noexcept;
    ~Pin() {
      slot_.pinned.store(nullptr);
      slot_.pinned.notify_all();
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    const WeightVersion& version() const noexcept { return *version_; }

   private:
    ReplicaSlot& slot_;
    const WeightVersion* version_;
  };

  // See sconce/model.h.
  uint64_t number() const noexcept { return published_number_.load(std::memory_order_relaxed); }
  uint64_t commit(uint64_t number);
  void abort();
  uint64_t rollback();
  void set_number(uint64_t number);
  void release_previous();
  std::vector<WeightSetInfo> list() const;
  std::string digest(WeightState state) const;
  std::vector<TensorDifference> difference(WeightState other) const;
  // `owner` owns the runner.
  std::unique_ptr<WeightSetFile> open(WeightState state, std::shared_ptr<const void> owner) const;
  ConstantMap extract(WeightState state) const;
  std::string package_fault() const;

  // The values of a version or, unless it is null, of a named set. The errors of WeightsRef::check(), and
  // kFailedPrecondition if there is no such version.
  Values values(WeightState state, const WeightSet* set) const SCONCE_EXCLUDES(state_mutex_);
  Values active_values() const SCONCE_EXCLUDES(state_mutex_);
  // Calls f(version) with the active version, while no update changes which one that is.
  template <class F>
  void with_active(F&& f) const SCONCE_EXCLUDES(work_mutex_) {
    const MutexLock work(work_mutex_);
    f(static_cast<const WeightVersion&>(*active()));
  }

  // Numbers are of all sets, named ones too. Those that are given from now on are larger than a number that was used.
  uint64_t next_number() SCONCE_EXCLUDES(state_mutex_);
  void use_number(uint64_t number) SCONCE_EXCLUDES(state_mutex_);

  // Steps of an update, by the holder of the UpdateLock. take_previous() drops the previous version, and returns those
  // pieces of its device memory that nobody has any more.
  std::vector<StoragePtr> take_previous() SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  void stage(Staging& staging, const std::string& label, const Progress& progress)
      SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  // Makes the values active, and the active version the previous one. Returns the number.
  uint64_t activate(Values values, const std::string& label) SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  // Makes an instance over the values, and drops it: their folding works.
  void try_values(const Values& values, const Progress& progress) const SCONCE_EXCLUDES(work_mutex_, state_mutex_);

  // Replicas have instances of both versions, so they come and go here.
  int add_replica(Device device, std::vector<int> cpus) SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  void remove_replica(int index) SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  // As Model::give_back_idle_memory().
  void free_idle_memory() noexcept;
  // The model is being unloaded: runs what is queued, removes all replicas, then frees the versions.
  void close() noexcept;

 private:
  void close(ReplicaSlot& slot) noexcept;
  // With the update's lock where versions change.
  std::unique_ptr<ModelInstance> instantiate(const ReplicaSlot& slot, const WeightVersion& version) const
      SCONCE_REQUIRES(work_mutex_);
  // Makes instances for replicas that have none, or one whose buffers are no longer theirs.
  void instantiate_all(WeightVersion& version, const Progress& progress = {}) SCONCE_REQUIRES(work_mutex_)
      SCONCE_EXCLUDES(state_mutex_);
  bool has_current_buffers(const WeightVersion& version, size_t slot) const noexcept SCONCE_REQUIRES(work_mutex_);
  // At load: makes the first version active.
  void start_with(std::unique_ptr<WeightVersion> first) noexcept SCONCE_REQUIRES(work_mutex_)
      SCONCE_EXCLUDES(state_mutex_);
  // Exchanges active and other; returns when no run uses the formerly active one. Returns the number.
  // `number`: as in commit().
  uint64_t exchange(uint64_t number = 0) noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  // The only place where runs get other weights, but for named sets: gives active_ its number, and runs that start from
  // here on pin it. Runs that have pinned the formerly active version keep that until they end.
  void go_live(uint64_t number = 0) noexcept SCONCE_REQUIRES(work_mutex_, state_mutex_);
  void wait_until_unused(const WeightVersion& version) const noexcept SCONCE_REQUIRES(work_mutex_);
  void set_other(std::unique_ptr<WeightVersion> version, WeightState state) noexcept SCONCE_REQUIRES(work_mutex_)
      SCONCE_EXCLUDES(state_mutex_);
  void drop_previous() noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  // Destroys the version, and frees pages of the archive that only it used.
  void destroy(std::unique_ptr<WeightVersion> version) const noexcept SCONCE_REQUIRES(work_mutex_);
  // Null: there is none. The analysis does not know that work_mutex_ is enough to read.
  WeightVersion* active() const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return active_.get();
  }
  WeightVersion* other() const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return other_.get();
  }
  // The version beside the active one if it has this state, else null.
  WeightVersion* other(WeightState state) const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return other_state_ == state ? other_.get() : nullptr;
  }
  // kFailedPrecondition if there is no such version.
  const WeightVersion& find(WeightState state) const SCONCE_REQUIRES(state_mutex_);
  static WeightSetInfo describe(const WeightVersion& version, WeightState state);

  const ModelCode& code_;
  const PackageWatch& files_;
  ReplicaPool& pool_;
  SequenceRuns& sequences_;
  const std::function<void()> activated_;

  mutable Mutex work_mutex_;
  mutable Mutex state_mutex_;
  mutable std::string update_ SCONCE_GUARDED_BY(state_mutex_);  // what is under way; empty: nothing
  // Written under both mutexes, so either is enough to read them: with work_mutex_ alone, through active() and
  // other(). The holder of the UpdateLock may rely on which they are.
  std::unique_ptr<WeightVersion> active_ SCONCE_GUARDED_BY(state_mutex_), other_ SCONCE_GUARDED_BY(state_mutex_);
  WeightState other_state_ SCONCE_GUARDED_BY(state_mutex_) = WeightState::kPrevious;
  uint64_t last_number_ SCONCE_GUARDED_BY(state_mutex_) = 0;
  std::atomic<const WeightVersion*> published_{nullptr};  // what runs pin
  std::atomic<uint64_t> published_number_{0};
};

inline WeightVersions::Pin::Pin(const WeightVersions& versions, ReplicaSlot& slot) noexcept
    : slot_(slot), version_(versions.published_.load()) {
  slot.pinned.store(version_);
  for (const WeightVersion* now = versions.published_.load(); now != version_; now = versions.published_.load()) {
    version_ = now;
    slot.pinned.store(version_);
    slot.pinned.notify_all();
  }
}

}  // namespace sconce::runner
