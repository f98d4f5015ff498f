// ReplicaPool: the replicas of a model, and which of them work.
//
// Thread-safe, except that one thread at a time opens and closes slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "src/runner/constants/package_watch.h"
#include "src/runner/replicas/model_code.h"
#include "src/runner/replicas/replica_slots.h"

namespace sconce::runner {

// What a run reads and writes.
struct RunCall {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  const Delivery& delivery;
  RunInfo& info;
};

class ReplicaPool {
 public:
  // Opens the replicas that the options ask for. run: as for ReplicaSlots. `code` and `files` outlive the pool.
  ReplicaPool(const ModelCode& code, const PackageWatch& files, const LoadOptions& options,
              std::function<void(ReplicaSlot&, RunRequest&)> run);

  // Used around work on the slot's device. If the work ends by an exception, this notes whether the device is lost for
  // good, so that requests and updates use other replicas, and whether the model's code must not run again.
  class FaultScope {
   public:
    FaultScope(ReplicaPool& pool, ReplicaSlot& slot) noexcept
        : pool_(pool), slot_(slot), before_(std::uncaught_exceptions()) {}
    ~FaultScope() {
      if (std::uncaught_exceptions() != before_) [[unlikely]]
        pool_.note_fault(slot_);
    }
    FaultScope(const FaultScope&) = delete;
    FaultScope& operator=(const FaultScope&) = delete;

   private:
    ReplicaPool& pool_;
    ReplicaSlot& slot_;
    int before_;
  };

  ReplicaSlots& slots() noexcept { return slots_; }
  const ReplicaSlots& slots() const noexcept { return slots_; }
  // Null: there is no open slot of this index.
  ReplicaSlot* open_slot(size_t index) const noexcept;
  // The errors of requests whose replica was removed, and of those that come while the model is unloaded.
  const std::exception_ptr& removed() const noexcept { return removed_; }
  const std::exception_ptr& unloading() const noexcept { return unloading_; }

  // Runs the instance, and checks afterwards that the package is unchanged if the run read it. Called by the slot's
  // holder.
  void run(ReplicaSlot& slot, ModelInstance& instance, bool reads_package, const RunCall& call) const;

  // Opens the slot, which is vacant().
  void open(ReplicaSlot& slot, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept;
  // Call this after a slot was closed.
  void closed() noexcept { on_caller_.store(inline_runs_ && !slots_.any_pinned()); }

  // Whether runs may use the caller's thread: kernels use one thread, and no replica has cores of its own.
  bool inline_runs() const noexcept { return inline_runs_; }
  bool runs_on_caller() const noexcept { return on_caller_.load(std::memory_order_relaxed); }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  bool code_failed() const noexcept { return code_failed_.load(std::memory_order_relaxed); }
  // kUnavailable if the model's code must not run again.
  void check_code() const {
    if (code_failed()) [[unlikely]]
      refuse_code();
  }
  // kUnavailable if no replica has a device that works.
  void check_any_works() const;

  // The first replica's device, if all replicas can get values from there without a host copy. None if one is on the
  // CPU.
  std::optional<Device> device_of_all() const;
  // The device of the first replica that works. kUnavailable.
  Device first_device() const;
  // Frees what replicas have not used since the last call. Skips replicas that run.
  void free_idle_memory() noexcept;
  // Frees what the replicas' devices cache, besides the replicas' own memory.
  void trim_devices() const noexcept;

 private:
  bool code_has_failed() const noexcept;
  [[noreturn]] void refuse_code() const;
  void note_fault(ReplicaSlot& slot) noexcept;

  // Made while there is memory, because Runner::submit() does not throw.
  const std::exception_ptr removed_ =
      std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the replica that the request needs was removed"));
  const std::exception_ptr unloading_ =
      std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the model is being unloaded"));
  const ModelCode& code_;
  const PackageWatch& files_;
  const bool inline_runs_;
  const uint64_t max_code_faults_;  // 0: any number
  std::atomic<bool> on_caller_;
  std::atomic<bool> failed_{false};       // no slot has a working device any more
  std::atomic<bool> code_failed_{false};  // the code has faulted max_code_faults_ times
  ReplicaSlots slots_;
};

}  // namespace sconce::runner
