// Runner: all replicas of a model and the constant sets they serve.
//
// A generation is a published constant set with one container per replica. A run pins the generation that is published
// when it starts; publishing waits until no replica has the old one pinned. So runs do not wait for updates, and no run
// sees two sets.
//
// Thread-safe. Three guards, taken in this order, none by a request:
//   turn        whose update it is, from its first step to the last; kept as a text, since an update spans calls
//   work_mutex_ makes containers, publishes, opens and closes slots
//   state_mutex_ what readers see of the sets; held for moments
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "src/loader/container.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/constants/package_watch.h"
#include "src/runner/constants/staging.h"
#include "src/runner/replicas/generation.h"
#include "src/runner/replicas/index_check.h"
#include "src/runner/replicas/input_check.h"
#include "src/runner/replicas/replica_slots.h"
#include "src/runner/replicas/sequence_places.h"
#include "src/runner/sets/bind_times.h"
#include "src/runner/sets/named_sets.h"

namespace sconce::runner {

class WarmUpTrial;

class Runner {
 public:
  Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options);
  ~Runner();

  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity, const WeightSet* weights,
              const SequenceStep& step, bool device_outputs);
  void submit(RunRequest& request) noexcept;
  void check_inputs(std::span<const Tensor> inputs) const {
    check_(inputs);
    indices_.of_host(inputs);
  }

  const ModelInfo& info() const noexcept { return info_; }
  uint64_t generation() const noexcept { return published_number_.load(std::memory_order_relaxed); }
  const std::vector<ConstantSpec>& constants() const noexcept { return table_->all(); }

  // See sconce/model.h.
  // `owner` is kept until the update is destroyed.
  std::unique_ptr<WeightUpdate> begin_update(UpdateOptions options, std::shared_ptr<void> owner);
  uint64_t commit(uint64_t generation);
  void abort();
  uint64_t rollback();
  void renumber(uint64_t generation);
  void release_previous();
  std::vector<WeightSetInfo> sets() const;
  std::string digest(WeightState state) const;
  std::vector<TensorDifference> difference(WeightState other) const;
  // `owner` owns the runner.
  std::unique_ptr<WeightSetFile> open(WeightState state, std::shared_ptr<const void> owner) const;

  // rehearsal.cpp
  std::unique_ptr<Rehearsal> rehearse(WeightState state, std::shared_ptr<const void> owner) const;
  std::unique_ptr<Rehearsal> rehearse(const std::shared_ptr<const WeightSet>& set,
                                      std::shared_ptr<const void> owner) const;

  // runner_sequences.cpp
  std::shared_ptr<Sequence> make_sequence(std::shared_ptr<const void> owner, bool rows);
  uint64_t sequence_bytes() const noexcept { return sequence_bytes_; }
  int64_t sequence_rows() const noexcept { return sequence_rows_; }

  // runner_sets.cpp
  std::shared_ptr<const WeightSet> find_set(std::string_view name) const { return named_sets().find(name); }
  bool binds_quickly() const noexcept { return bind_times_.quick(); }
  std::shared_ptr<const WeightSet> bring_set(std::string_view name) { return named_sets().bring(name); }
  std::vector<NamedSetInfo> named_set_list() const { return sets_ ? sets_->list() : std::vector<NamedSetInfo>(); }
  NamedSetInfo named_set(std::string_view name) const { return named_sets().info(name); }
  std::string set_digest(std::string_view name);
  std::unique_ptr<WeightSetFile> open_set(std::string_view name, std::shared_ptr<const void> owner);
  uint64_t commit_set(std::string_view name) { return named_sets().commit(name); }
  void abort_set(std::string_view name) { named_sets().abort(name); }
  uint64_t restore_set(std::string_view name) { return named_sets().restore(name); }
  void renumber_set(std::string_view name, uint64_t from, uint64_t to) { named_sets().renumber(name, from, to); }
  NamedSetsMemory named_sets_memory() const { return sets_ ? sets_->memory() : NamedSetsMemory(); }
  void remove_set(std::string_view name) { named_sets().remove(name); }
  uint64_t promote_set(std::string_view name);

  void update(SetRole role, const ConstantMap& constants, bool full, bool user_managed);
  void fold(SetRole role);
  void swap();
  void free_inactive();
  ConstantMap extract(SetRole role) const;

  int add_replica(Device device, std::vector<int> cpus);
  void remove_replica(int index);
  WarmUp warm_up(std::optional<uint64_t> expected) const SCONCE_EXCLUDES(work_mutex_);  // warm_up.cpp
  std::vector<ReplicaInfo> replicas() const { return slots_.describe(); }
  void give_back_idle_memory() noexcept;
  bool runs_on_caller() const noexcept { return on_caller_.load(std::memory_order_relaxed); }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  bool code_failed() const noexcept { return code_failed_.load(std::memory_order_relaxed); }
  std::string package_fault() const;

 private:
  class Update;
  class OwnReplica;
  std::unique_ptr<Rehearsal> rehearse(std::shared_ptr<const ConstantSet> values, const ConstantSet& served,
                                      std::shared_ptr<const void> owner) const;
  // Admits one update at a time. kBusy names the one under way, or the set that waits for commit or abort.
  class Turn {
   public:
    // `may_find_staged`: for the calls that end a staged set.
    Turn(const Runner& runner, std::string what, bool may_find_staged = false);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    const Runner& runner_;
  };

  void load_constants(const LoadOptions& options);
  std::string warm_up_tried(std::optional<WarmUpTrial>& trial, const LoadOptions& options) const;
  // Used around work on the slot's device: if the work loses the device, it is lost for good, and requests and updates
  // use other replicas.
  class Watch {
   public:
    Watch(Runner& runner, ReplicaSlot& slot) noexcept;
    ~Watch();

   private:
    Runner& runner_;
    ReplicaSlot& slot_;
    int before_;
  };
  // Whether it must not run again.
  bool code_has_failed() const noexcept;
  [[noreturn]] void refuse_failed_code() const;
  // Of inputs on the replica's device, before a run.
  void check_device_indices(ReplicaSlot& slot, std::span<const Tensor> inputs);
  void run_on(ReplicaSlot& slot, std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* weights,
              const SequenceStep& step, const Delivery& delivery, RunInfo& info);
  // Runs the container and checks afterwards that the package is unchanged, if the run read it.
  void run_container(ReplicaSlot& slot, ModelInstance& bound, bool reads_package, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs, const Delivery& delivery, RunInfo& info);
  // With a named set, by the slot's holder, who has pinned the active generation.
  void run_set(ReplicaSlot& slot, const Generation& active, const WeightSet& weights, std::span<const Tensor> inputs,
               std::span<Tensor> outputs, const Delivery& delivery, RunInfo& info);
  // The same for a step of a sequence. weights: null, if the sequence begins with the active set.
  void run_step(ReplicaSlot& slot, const Generation& active, const WeightSet* weights, const SequenceStep& step,
                std::span<const Tensor> inputs, std::span<Tensor> outputs, const Delivery& delivery, RunInfo& info);
  // The set becomes that of the place, whose buffers get its values if `anew`.
  void place_over(ReplicaSlot& slot, const Generation& active, std::shared_ptr<const ConstantSet> values, bool anew,
                  SequenceSlot& place) const;
  void begin_sequence(ReplicaSlot& slot, const Generation& active, const WeightSet* weights, SequenceSlot& place) const;
  void move_rows(ReplicaSlot& slot, const Generation& active, SequenceSlot& place, const SequenceRows& rows) const;
  // The slot that must run a request of a sequence or of one replica. Null: it is gone, and `error` says so.
  ReplicaSlot* slot_for(const SequenceStep& step, int replica, std::exception_ptr& error) const noexcept;
  void close(ReplicaSlot& slot) noexcept;
  void open_places(const LoadOptions& options);
  const LoadedSet& own_set(const WeightSet& weights) const;
  ModelInstance& bound_set(ReplicaSlot& slot, const Generation& active, const LoadedSet& set) const;
  void open_sets(std::shared_ptr<const ConstantSet> packaged, const LoadOptions& options);
  NamedSets& named_sets() const;
  // A set as NamedSets keeps it. `progress` as in UpdateOptions.
  NamedSets::Held make_set(std::string name, uint64_t generation, std::shared_ptr<const ConstantSet> values)
      SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  // Updates the memory of named sets after other weights became active. If memory runs out, the activation still
  // stands.
  // if_idle: as NamedSets::settle_if_idle().
  void settle_sets(bool if_idle = false) noexcept SCONCE_EXCLUDES(work_mutex_, state_mutex_);
  void unbind(const std::vector<NamedSets::Held>& sets) noexcept SCONCE_EXCLUDES(work_mutex_);
  // Call this after a run, without its slot: if it has packed values of a named set, the sets' memory is looked at.
  void settle_packed() noexcept {
    if (packed_.load(std::memory_order_relaxed) && packed_.exchange(false)) settle_sets(true);
  }
  void finish_set(Staging& staging, const UpdateOptions& options, const LoadedSet* base);
  std::shared_ptr<const ConstantSet> active_set() const SCONCE_EXCLUDES(state_mutex_);
  uint64_t next_generation() SCONCE_EXCLUDES(state_mutex_);

  // With the turn where sets change.
  std::unique_ptr<ModelInstance> bind(const ReplicaSlot& slot, const Generation& generation) const
      SCONCE_REQUIRES(work_mutex_);
  // Makes containers for replicas that have none, or one whose buffers are no longer theirs.
  void bind_all(Generation& generation, const std::function<void(int, bool)>& progress = {})
      SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  bool has_current_buffers(const Generation& generation, size_t slot) const noexcept SCONCE_REQUIRES(work_mutex_);
  // Makes it active; frees the previous one when no run uses it.
  void publish(std::unique_ptr<Generation> next) noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  // Exchanges active and other; returns when no run uses the formerly active one.
  // `number`: as in commit().
  void exchange(uint64_t number = 0) noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  void announce(uint64_t number = 0) noexcept SCONCE_REQUIRES(work_mutex_, state_mutex_);
  void wait_until_unused(const Generation& generation) const noexcept SCONCE_REQUIRES(work_mutex_);
  void set_other(std::unique_ptr<Generation> generation, WeightState state) noexcept SCONCE_REQUIRES(work_mutex_)
      SCONCE_EXCLUDES(state_mutex_);
  void drop_previous() noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  // Drops it too. Returns those pieces of its device memory that nobody has any more. Runs that used them are over,
  // since a run waits for its stream before it lets go of a set.
  std::vector<StoragePtr> take_previous() SCONCE_REQUIRES(work_mutex_) SCONCE_EXCLUDES(state_mutex_);
  // Null: there is none. The analysis does not know that work_mutex_ is enough to read.
  Generation* active() const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return active_.get();
  }
  Generation* other() const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return other_.get();
  }
  // The other one, if it is that.
  Generation* other(WeightState state) const noexcept SCONCE_REQUIRES(work_mutex_) SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    return other_state_ == state ? other_.get() : nullptr;
  }
  // Frees what the replicas' devices cache, besides the replicas' own memory.
  void trim_devices() const noexcept;
  // The first replica's device, if all replicas can get values from there without a host copy. None if one is on the
  // CPU.
  std::optional<Device> device_of_all() const;
  // Destroys the generation, and frees pages of the archive that only it used.
  void give_back(std::unique_ptr<Generation> generation) const noexcept SCONCE_REQUIRES(work_mutex_);

  // kFailedPrecondition if there is no such set.
  const Generation& find(WeightState state) const SCONCE_REQUIRES(state_mutex_);
  static WeightSetInfo describe(const Generation& generation, WeightState state);

  std::shared_ptr<const Package> package_;
  const PackageWatch package_watch_;
  std::shared_ptr<const loader::Module> module_;
  std::unique_ptr<ConstantTable> table_;
  InputCheck check_;
  IndexCheck indices_;
  ModelInfo info_;
  Replica::Settings replica_settings_;
  bool warm_up_ = true;
  std::atomic<bool> on_caller_{false};
  bool inline_runs_ = false;  // kernels use one thread and no cores are set, so a run may use the caller's thread

  // Made while there is memory, because submit() does not throw.
  const std::exception_ptr unloading_ =
      std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the model is being unloaded"));
  const std::exception_ptr no_replica_ =
      std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the replica that the request needs was removed"));
  const std::exception_ptr foreign_ =
      std::make_exception_ptr(Error(ErrorCode::kInvalidArgument, "the sequence is another model's"));

  mutable Mutex work_mutex_;
  mutable Mutex state_mutex_;
  mutable std::string turn_ SCONCE_GUARDED_BY(state_mutex_);  // what is under way; empty: nothing
  // Written under both mutexes, so either is enough to read them: with work_mutex_ alone, through active() and
  // other(). Who has the turn may rely on which they are.
  std::unique_ptr<Generation> active_ SCONCE_GUARDED_BY(state_mutex_), other_ SCONCE_GUARDED_BY(state_mutex_);
  WeightState other_state_ SCONCE_GUARDED_BY(state_mutex_) = WeightState::kPrevious;

  // The generation that requests see.
  std::atomic<const Generation*> published_{nullptr};
  std::atomic<uint64_t> published_number_{0};
  uint64_t last_number_ SCONCE_GUARDED_BY(state_mutex_) = 0;  // of all sets, named ones too
  std::atomic<bool> failed_{false};                           // no slot has a working device any more
  std::atomic<bool> code_failed_{false};                      // the code has faulted max_code_faults_ times
  uint64_t max_code_faults_ = 0;                              // 0: any number
  size_t bound_sets_ = 0;                                     // containers of named sets that a replica keeps
  mutable BindTimes bind_times_;                              // of these
  std::atomic<bool> packed_{false};                           // a run has packed values of a named set
  std::unique_ptr<NamedSets> sets_;                           // null: the model holds none
  std::unique_ptr<SequencePlaces> places_;                    // null: the model has no sequences
  uint64_t sequence_bytes_ = 0;
  int64_t sequence_rows_ = 0;
  bool sequences_follow_ = false;
  ReplicaSlots slots_;  // last, so that its lanes finish what is queued before anything else is destroyed
};

}  // namespace sconce::runner
