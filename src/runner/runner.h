// Runner: all replicas of a model and the constant sets they serve.
//
// A generation is a published constant set with one container per replica. A run pins the generation that is published
// when it starts; publishing waits until no replica has the old one pinned, then takes it apart. So no run waits for an
// update, and no run sees two sets.
//
// Thread-safe. Updates are one at a time: the second caller gets kBusy.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sconce/model.h"
#include "src/loader/container.h"
#include "src/runner/constant_set.h"
#include "src/runner/input_check.h"
#include "src/runner/lane.h"
#include "src/runner/replica.h"

namespace sconce {

class Runner {
 public:
  Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options);
  ~Runner();

  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  void submit(RunRequest& request) noexcept;
  void check_inputs(std::span<const Tensor> inputs) const { check_(inputs); }

  const ModelInfo& info() const noexcept { return info_; }
  uint64_t generation() const noexcept { return published_number_.load(std::memory_order_relaxed); }

  void update(Buffer buffer, const ConstantMap& constants, bool full, bool user_managed);
  void fold(Buffer buffer);
  void swap();
  void free_inactive();
  ConstantMap extract(Buffer buffer) const;
  const std::vector<ConstantSpec>& constants() const noexcept { return table_->all(); }

 private:
  struct Generation {
    uint64_t number;
    std::shared_ptr<const ConstantSet> set;
    std::vector<std::unique_ptr<loader::Container>> containers;  // by replica
  };
  struct Seat {  // a replica with what only the runner needs of it
    explicit Seat(int index, Device device, int threads) : replica(index, device, threads) {}
    Replica replica;
    std::atomic<Generation*> pinned{nullptr};
    std::unique_ptr<Lane> lane;
  };

  void load_constants(const LoadOptions& options);
  // `first`, where given, is a container of the first replica over this very set.
  std::unique_ptr<Generation> stage(std::shared_ptr<const ConstantSet> set, const std::vector<bool>& reset,
                                    std::unique_ptr<loader::Container> first = nullptr);
  void publish(std::unique_ptr<Generation> next);
  // Holder of the seat's replica only.
  void run_on(Seat& seat, std::span<const Tensor> inputs, std::span<Tensor> outputs, RunInfo& info);
  std::unique_lock<std::mutex> begin_update() const;
  std::vector<bool> named(const ConstantMap& constants) const;

  std::shared_ptr<const Package> package_;
  std::shared_ptr<const loader::Module> module_;
  std::unique_ptr<ConstantTable> table_;
  InputCheck check_;
  ModelInfo info_;
  std::vector<std::unique_ptr<Seat>> seats_;
  bool inline_runs_ = false;  // kernels use one thread: a run may happen on the caller's
  std::atomic<uint32_t> next_seat_{0};

  mutable std::mutex update_mutex_;
  // Below: written by the holder of update_mutex_.
  std::atomic<Generation*> active_{nullptr};
  std::atomic<uint64_t> published_number_{0};
  std::unique_ptr<Generation> active_owner_;
  std::shared_ptr<const ConstantSet> inactive_;
  std::vector<bool> inactive_reset_;               // constants named since the inactive set was begun
  std::unique_ptr<Generation> inactive_prepared_;  // containers of inactive_, where it was folded already
};

}  // namespace sconce
