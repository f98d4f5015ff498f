// Replica: one container on one device at a time, with the memory it runs in and the buffers it writes.
//
// Held by one thread at a time: acquire() before run(), release() after. Building containers for a later generation is
// the control thread's business and goes on while the replica runs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "src/device/cpu_arena.h"
#include "src/loader/container.h"
#include "src/runner/constant_set.h"

namespace sconce {

class Replica {
 public:
  Replica(int index, Device device, int threads) : index_(index), device_(device), threads_(threads) {}

  int index() const noexcept { return index_; }
  Device device() const noexcept { return device_; }

  bool try_acquire() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void acquire() noexcept {
    while (!try_acquire()) busy_.wait(true, std::memory_order_relaxed);
  }
  void release() noexcept {
    busy_.store(false, std::memory_order_release);
    busy_.notify_one();
  }
  bool idle() const noexcept { return !busy_.load(std::memory_order_relaxed); }

  // A container of the module over the set, folded. Buffers that the model writes are this replica's own: kept from the
  // last build unless `reset` (per stored constant; empty means none) asks for the set's values.
  std::unique_ptr<loader::Container> build(const std::shared_ptr<const loader::Module>& module,
                                           const ConstantTable& table, const ConstantSet& set,
                                           const std::vector<bool>& reset);
  // Makes the buffers of the last build the replica's: what the next build keeps.
  void commit_buffers() noexcept { buffers_ = staged_buffers_; }
  const std::vector<Tensor>& buffers() const noexcept { return buffers_; }  // per stored constant; undefined if shared

  // Holder only. Tensors that the model makes come from the replica's arena.
  void run(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs);
  const CpuArena& arena() const noexcept { return *arena_; }

 private:
  int index_;
  Device device_;
  int threads_;
  std::atomic<bool> busy_{false};
  CpuArena::Ptr arena_ = CpuArena::create();
  std::vector<Tensor> buffers_, staged_buffers_;
};

}  // namespace sconce
