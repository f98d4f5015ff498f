// Replica: memory and settings with which the containers of one replica run.
//
// The thread that holds the replica's slot calls run(). The control thread makes containers of later weight versions
// while the replica runs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "src/device/cpu_arena.h"
#include "src/device/device_backend.h"
#include "src/loader/container.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/replicas/graph_runs.h"

namespace sconce::runner {

// A folded container over a constant set, with the replica's own copies of buffers that the model writes.
struct ModelInstance {
  std::unique_ptr<loader::Container> container;
  std::vector<Tensor> buffers;        // per stored constant; undefined if it is shared
  std::unique_ptr<GraphRuns> graphs;  // null if its runs are never recorded
};

// What becomes of a run's outputs, as a request asks: see RunRequest.
struct Delivery {
  bool device_outputs = false;
  OutputRows last_rows;
  bool to_host(size_t output) const noexcept { return !device_outputs || static_cast<int>(output) == last_rows.output; }
  // Whether only rows of the output, which the run made as `made`, are wanted.
  bool rows_of(size_t output, const Tensor& made) const noexcept;
};

class alignas(64) Replica {
 public:
  struct Settings {
    int threads = 1, compiled_threads = 0;
    bool host_outputs = false;
    std::vector<Device> input_devices;  // by input; CPU if the model reads it there
    std::vector<bool> written_inputs;   // by input: the model may write it
    LaneOptions lane;
    int graphs = 0;  // device graphs to keep; 0: none are recorded
  };
  // kUnavailable, kInvalidArgument for a device that cannot be used.
  Replica(Device device, Settings settings);
  Device device() const noexcept { return device_; }

  // Takes over buffers that the model writes from `before` (null: none), except those for which `reset` (per stored
  // constant; empty: none) asks for the set's values. `active` (null: none): the set that the device already has.
  // kModelFailed, kOutOfMemory.
  std::unique_ptr<ModelInstance> instantiate(const std::shared_ptr<const loader::Module>& module,
                                             const ConstantTable& table, const ConstantSet& set,
                                             const std::vector<bool>& reset, const ModelInstance* before,
                                             const ConstantSet* active) const;

  // Gives the instance's own buffers the values of a set, which need not be its set. Called by the slot's holder.
  void restore(ModelInstance& instance, const ConstantTable& table, const ConstantSet& set, const ConstantSet* active);

  // Copies of a container's buffers, for rows that are set aside. Called by the slot's holder.
  std::vector<Tensor> copies_of(const std::vector<Tensor>& buffers, const ConstantTable& table) const;
  // Moves rows between the container's own buffers, copies of them and the set's values, before the next run. Called by
  // the slot's holder.
  void move_rows(ModelInstance& instance, std::vector<Tensor>& aside, const ConstantTable& table,
                 const ConstantSet& set, const ConstantSet* active, const SequenceRows& rows) const;

  // The model's tensors come from the replica's arena. On a device, inputs from elsewhere are copied there. When the
  // call returns, outputs are complete: in pinned host memory if host_outputs is set and device_outputs is not.
  void run(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
           const Delivery& delivery);
  // For device work before a run, by the slot's holder; null on the CPU.
  DeviceStream* stream() const noexcept { return stream_.get(); }

  // Frees what was not used since the last call. Called by the slot's holder.
  void give_back_idle_memory() noexcept;

  const GraphReport& graphs() const noexcept { return *graphs_; }

  // After a run that threw: whether this process has lost the device; failure() says by what.
  bool lost() noexcept;
  const char* failure() const noexcept;  // "" if it works

 private:
  void run_on_device(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     const Delivery& to);
  // Returns false if the run must be done without a graph.
  bool run_as_graph(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                    const Delivery& to);
  // The copies of a launch: inputs to where the graph reads them; outputs, made here, from where it leaves them. Large
  // tensors of the host and outputs of which rows are wanted are omitted: inputs are copied separately, outputs stay
  // undefined.
  void copy_in(GraphRuns::Shape& shape, std::span<const Tensor> inputs);
  void copy_out(GraphRuns::Shape& shape, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                const Delivery& to) const;
  bool record(ModelInstance& instance, GraphRuns::Shape& shape, std::span<const Tensor> inputs);
  bool reads_on_host(size_t input) const noexcept {
    return input < settings_.input_devices.size() && settings_.input_devices[input].type == DeviceType::kCpu;
  }
  bool may_write(size_t input) const noexcept {
    return input >= settings_.written_inputs.size() || settings_.written_inputs[input];
  }
  // Copies back what the model wrote to an input that was sent to it from elsewhere.
  void bring_back(size_t i, const Tensor& sent, const Tensor& input) const;
  // In pinned host memory, complete when the stream is done.
  Tensor fetched(const Tensor& output) const;

  Device device_;
  Settings settings_;
  std::unique_ptr<DeviceStream> stream_;  // null on the CPU
  std::shared_ptr<GraphReport> graphs_ = std::make_shared<GraphReport>();
  CpuArena::Ptr arena_ = CpuArena::create();
  bool ran_ = false;  // since memory was last freed
  std::atomic<const char*> failure_{nullptr};
};

}  // namespace sconce::runner
