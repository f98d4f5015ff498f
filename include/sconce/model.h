// Model: one compiled model of a package, loaded and ready to run.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "sconce/package.h"
#include "sconce/tensor.h"
#include "sconce/weights.h"

namespace sconce {
namespace runner {
class Lane;
}

struct LoadOptions {
  std::string model_name;  // inside the archive; "" as in Package::model
  std::vector<Device> devices{Device{}};
  // Per device. Replicas of a model that writes its buffers have each their own: more than one is for callers who
  // want that (say, with an affinity key per session).
  int replicas = 1;
  // OpenMP threads a replica may use for operators outside compiled kernels; 0: what the package was compiled for,
  // but no more than the cores of the process. Compiled kernels always get the number they were compiled with.
  int threads = 0;
  // Cores to pin lanes to, spread over replicas; empty: not pinned. Runs of a pinned replica happen on its lane only,
  // and the memory it makes there is first touched there: on the NUMA node of its cores.
  std::vector<int> cpu_set;
  // Static sizes, ranges, equal symbols and strides of inputs. Count, dtype and rank are checked always.
  bool check_inputs = true;
  bool verify = false;  // CRC of weights too
  // Before new weights are published they are packed as runs have those before them packed; without it, by the first
  // runs. Constants are folded before load returns and before new weights are published, either way.
  bool warm_up = true;
  // Models of a device: outputs arrive in (pinned) memory of the host. Without it they are tensors of the device.
  bool host_outputs = true;
  // CUDA graphs that each replica keeps, one per shape of inputs that it has run a few times; 0: none. A model that
  // reads the device's values on the host, or draws random numbers, runs without: ReplicaInfo::no_graphs says so.
  int cuda_graphs = 8;
  // Whether float32 matrix products of CUDA devices may round their operands to TF32 (10 bits), which takes a fraction
  // of the time: PyTorch's torch.backends.cuda.matmul.allow_tf32. A package does not tell what it was compiled under;
  // kernels of its own have what they were compiled with.
  bool allow_tf32 = false;
  std::vector<std::filesystem::path> op_libraries;
};

struct ModelInfo {
  ModelSpec spec;    // inputs, outputs and constants completed by what the .so tells
  int replicas = 0;  // as loaded; what there is now: Model::replicas()
  std::vector<Device> devices;
  std::chrono::nanoseconds load_time{};
  uint64_t constant_bytes = 0;  // of one constant set
};

struct RunInfo {
  uint64_t generation = 0;                   // constant set that answered
  std::shared_ptr<const std::string> label;  // of that set; null where it has none
  int replica = -1;
  std::chrono::nanoseconds queue{};  // from submit to start
  std::chrono::nanoseconds compute{};
};

// A run to be done by a lane. The caller owns it and what the spans point to until finished() is called.
class RunRequest {
 public:
  virtual ~RunRequest() = default;
  std::span<const Tensor> inputs;  // in the model's flat order
  std::span<Tensor> outputs;       // assigned; undefined where the model returns None
  // 0: the least loaded replica. Else requests of one key go to one replica, as long as it is there.
  uint64_t affinity = 0;
  // Outputs stay on the device that ran the model, LoadOptions::host_outputs or not.
  bool device_outputs = false;
  RunInfo info;
  std::exception_ptr error;  // set instead of outputs
  // Called on the lane when a replica is the request's own: the last moment to set inputs and outputs. False: there is
  // nothing to run. May throw. Not called where the run cannot come to that.
  virtual bool starting() { return true; }
  // Called on the lane after a run that succeeded. May throw.
  virtual void ran() {}
  // Called once, on the lane (or in submit(), where the lane has no thread and none can be started). Must not block and
  // must not throw.
  virtual void finished() noexcept = 0;

 private:
  friend class runner::Lane;
  RunRequest* next_ = nullptr;
  std::chrono::steady_clock::time_point submitted_{};
};

struct ReplicaInfo {
  int index = 0;
  Device device;
  std::vector<int> cpus;  // empty: not pinned
  int64_t load = 0;       // requests queued or running on its lane
  int graphs = 0;         // CUDA graphs it keeps
  uint64_t graph_runs = 0;
  std::string no_graphs;  // why its runs are not recorded; empty: nothing speaks against it
  std::string failure;    // what its device was lost by; empty: it works
};

// Which of the two constant sets of a model: the one that runs use, or the one beside it.
enum class SetRole : int8_t { kActive, kInactive };

using ConstantMap = std::map<std::string, Tensor, std::less<>>;

// Thread-safe, except that one weight update happens at a time: the second caller gets kBusy, with who is at it. An
// update that begin_update() returned lasts until its set is committed or aborted, or the update is destroyed
// unfinished.
class Model : public std::enable_shared_from_this<Model> {
 public:
  // Loads and makes ready: preflight, container, constants, folding. Errors of Package::open, kIncompatible with every
  // reason why it cannot run here, kModelFailed, kOutOfMemory.
  static std::shared_ptr<Model> load(std::shared_ptr<const Package> package, LoadOptions options = {});
  ~Model();  // waits for running requests

  const ModelInfo& info() const noexcept;

  // Runs on the calling thread where a replica is free and its kernels are single-threaded, else on a lane; returns
  // when done. outputs.size() must be the model's. Inputs that the model writes are written in place.
  // kInvalidArgument names the input, what was expected and what came; kModelFailed carries the model's own message.
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity = 0);
  // Queues the request on the lane of the least loaded replica, or on that of its affinity. Argument errors are
  // delivered like all others.
  void submit(RunRequest& request);

  // Whether run() calls the model on the calling thread, but for moments when all replicas are busy. Costs one load.
  bool runs_on_caller() const noexcept;

  // Throws what run() would throw for these inputs, without running.
  void check_inputs(std::span<const Tensor> inputs) const;

  // Weights. Names are FQNs; where a constant has none, its own name. Buffers that the model writes are a replica's
  // own: an update or rollback keeps their current values, unless the update names them.
  uint64_t generation() const noexcept;
  std::vector<ConstantSpec> constants() const;

  // The two phases of sconce/weights.h. Whatever fails leaves what is served as it is.
  std::unique_ptr<WeightUpdate> begin_update(UpdateOptions options);  // keeps the model alive; kBusy, kInvalidArgument
  // Staged to active, active to previous; returns the generation. Every run that starts from now on uses it; returns
  // when none uses the set before. kFailedPrecondition if nothing is staged.
  uint64_t commit_weights();
  void abort_weights();  // drops the staged set; kFailedPrecondition if there is none
  // Previous to active, under a generation of its own; active to previous. kFailedPrecondition if there is none.
  uint64_t rollback_weights();
  void release_previous();                         // gives its memory back; nothing happens if there is none
  std::vector<WeightSetInfo> weight_sets() const;  // the active one first
  // "sha-256:HEX" of a set, the same for equal values on any host; docs/weights.md. kFailedPrecondition if there is
  // none.
  std::string weights_digest(WeightState state) const;

  // As AOTInductor's container has it. The inactive set is the staged or the previous one of above; one that
  // begin_update() staged is left alone (kBusy).
  // Replaces the named constants. full: all must be named (buffers, tensor constants and empty parameters may be left
  // out). What is left out comes from the active set, but an inactive set keeps its parameters. user_managed: tensors
  // are used in place, else copied. An update of the active set keeps none to go back to, nor changes the inactive one.
  void update_constants(SetRole role, const ConstantMap& constants, bool full, bool user_managed = false);
  void fold_constants(SetRole role);
  void swap_constants();  // the inactive set becomes active, the active one inactive; kFailedPrecondition if empty
  void free_inactive_constants();
  ConstantMap extract_constants(SetRole role) const;

  // Replicas, while others serve. The index of a removed replica is given to a later one.
  // kInvalidArgument for cores that the process may not use, kUnsupported for the device, the errors of load().
  int add_replica(Device device, std::vector<int> cpus = {});
  // Takes no new requests, answers those it has, then goes. kNotFound; kFailedPrecondition for the last one.
  void remove_replica(int index);
  std::vector<ReplicaInfo> replicas() const;
  // Gives back memory that replicas keep for runs and have not needed since the last call: for who calls it every few
  // seconds. Waits for no run, and does nothing where an update or a replica is being made.
  void give_back_idle_memory() noexcept;
  // Whether no replica can run any more, since their devices are lost to this process (an illegal address, say): every
  // run would fail, and only a new process helps. Costs one load.
  bool failed() const noexcept;
  // Why runs fail since the package's file was written to in place and what it was could not be kept
  // (docs/security.md); empty: they do not. It is to be loaded again.
  std::string package_fault() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sconce
