// Replica: the memory and the settings that the containers of one replica run with.
//
// run() is for the thread that holds the replica's seat. Making containers for a later generation is the control
// thread's business and goes on while the replica runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/device/cpu_arena.h"
#include "src/device/device_backend.h"
#include "src/loader/container.h"
#include "src/runner/constant_set.h"

namespace sconce {

// A container over a constant set, folded, with the replica's own buffers that it writes.
struct BoundContainer {
  std::unique_ptr<loader::Container> container;
  std::vector<Tensor> buffers;  // per stored constant; undefined where it is shared
};

class Replica {
 public:
  struct Settings {
    int threads = 1;
    bool host_outputs = false;
    std::vector<Device> input_devices;  // by input; CPU where the model reads it there
  };
  // kUnavailable, kInvalidArgument for a device that cannot be used.
  Replica(Device device, Settings settings);
  Device device() const noexcept { return device_; }

  // Buffers that the model writes are taken over from `before` (null: none), unless `reset` (per stored constant; empty
  // means none) asks for the set's values. `active` (null: none): the set that a device has already. kModelFailed,
  // kOutOfMemory.
  std::unique_ptr<BoundContainer> bind(const std::shared_ptr<const loader::Module>& module, const ConstantTable& table,
                                       const ConstantSet& set, const std::vector<bool>& reset,
                                       const BoundContainer* before, const ConstantSet* active) const;

  // Tensors that the model makes come from the replica's arena. On a device: inputs of the host are sent there, and the
  // outputs are complete when it returns, in pinned memory of the host with host_outputs.
  void run(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs);

 private:
  void run_on_device(loader::Container& container, std::span<const Tensor> inputs, std::span<Tensor> outputs);

  Device device_;
  Settings settings_;
  std::unique_ptr<DeviceLane> lane_;  // null on the CPU
  CpuArena::Ptr arena_ = CpuArena::create();
};

}  // namespace sconce
