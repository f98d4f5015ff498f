// Replica: the memory and the settings that the containers of one replica run with.
//
// run() is for the thread that holds the replica's slot. Making containers for a later generation is the control
// thread's business and goes on while the replica runs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/device/cpu_arena.h"
#include "src/device/device_backend.h"
#include "src/loader/container.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/replicas/graph_runs.h"

namespace sconce::runner {

// A container over a constant set, folded, with the replica's own buffers that it writes.
struct BoundContainer {
  std::unique_ptr<loader::Container> container;
  std::vector<Tensor> buffers;        // per stored constant; undefined where it is shared
  std::unique_ptr<GraphRuns> graphs;  // null where its runs are never recorded
};

class alignas(64) Replica {
 public:
  struct Settings {
    int threads = 1, compiled_threads = 0;
    bool host_outputs = false;
    std::vector<Device> input_devices;  // by input; CPU where the model reads it there
    std::vector<bool> written_inputs;   // by input: the model may write it
    LaneOptions lane;
    int graphs = 0;  // graphs of the device that are kept; 0: none are recorded
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

  // Tensors that the model makes come from the replica's arena. On a device: inputs from elsewhere are sent there, and
  // the outputs are complete when it returns, in pinned memory of the host with host_outputs, unless device_outputs.
  void run(BoundContainer& bound, std::span<const Tensor> inputs, std::span<Tensor> outputs, bool device_outputs);

  // What was not in use since the last call. By who holds the slot.
  void give_back_idle_memory() noexcept;

  const GraphReport& graphs() const noexcept { return *graphs_; }

  // After a run that threw: whether the device can do nothing more for this process. failure() says by what.
  bool lost() noexcept;
  const char* failure() const noexcept;  // "" where it works

 private:
  void run_on_device(BoundContainer& bound, std::span<const Tensor> inputs, std::span<Tensor> outputs, bool fetch);
  // False where the run has to be done without a graph.
  bool run_as_graph(BoundContainer& bound, std::span<const Tensor> inputs, std::span<Tensor> outputs, bool fetch);
  // What a launch copies: inputs to where the graph reads them, outputs, made here, from where it leaves them. Large
  // ones of the host are left out: inputs are on their way then, outputs undefined.
  void copy_in(GraphRuns::Shape& shape, std::span<const Tensor> inputs);
  void copy_out(GraphRuns::Shape& shape, std::span<const Tensor> inputs, std::span<Tensor> outputs, bool fetch) const;
  bool record(BoundContainer& bound, GraphRuns::Shape& shape, std::span<const Tensor> inputs);
  bool reads_on_host(size_t input) const noexcept {
    return input < settings_.input_devices.size() && settings_.input_devices[input].type == DeviceType::kCpu;
  }
  bool may_write(size_t input) const noexcept {
    return input >= settings_.written_inputs.size() || settings_.written_inputs[input];
  }
  // What the model wrote to an input that was sent to it from elsewhere.
  void bring_back(size_t i, const Tensor& sent, const Tensor& input) const;
  // In pinned memory of the host once the stream has passed.
  Tensor fetched(const Tensor& output) const;

  Device device_;
  Settings settings_;
  std::unique_ptr<DeviceLane> lane_;  // null on the CPU
  std::shared_ptr<GraphReport> graphs_ = std::make_shared<GraphReport>();
  CpuArena::Ptr arena_ = CpuArena::create();
  bool ran_ = false;  // since memory was last given back
  std::atomic<const char*> failure_{nullptr};
};

}  // namespace sconce::runner
