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

#include "sconce/device_memory.h"
#include "sconce/difference.h"
#include "sconce/error.h"
#include "sconce/package.h"
#include "sconce/tensor.h"
#include "sconce/trial/trial_process.h"
#include "sconce/weights.h"

namespace sconce {
namespace runner {
class ReplicaThread;
}
class WeightSetFile;  // sconce/weight_sources.h

// A slot for the state of one sequence on one replica. A sequence is a series of runs that continue one another; its
// state is the content of the buffers that the model writes. Made by Model::make_sequence(). Keeps the model alive and
// frees its slot when destroyed; no run may use it then. A sequence keeps the set of weights of its first step (see
// LoadOptions::sequences_follow), in memory too.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // The index of the replica that runs its steps. A later replica may get the same index.
  virtual size_t replica() const noexcept = 0;
};

// Moves of rows before a step runs. A row is an index in the first dimension of each buffer that the model writes, for
// a model whose rows are independent states (Model::sequence_rows()). A row is in one of the lists, or in both
// `set_aside` and `reset`.
struct SequenceRows {
  std::span<const uint32_t> set_aside;  // copied to memory of the sequence, where no run changes them
  // Set to the values that were last set aside; kFailedPrecondition if there are none.
  std::span<const uint32_t> bring_back;
  std::span<const uint32_t> reset;  // set to their initial values in the set of weights
};

// Makes a run a step of a sequence. Steps submitted one after the other run in this order.
struct SequenceStep {
  Sequence* sequence = nullptr;  // owned by the caller; null: the run uses the replica's own buffers
  // True for the first step: the buffers get their initial values, and the sequence the set of weights of this run.
  bool begins = false;
  // The epoch of the sequence: a number that the caller chooses for the first step and repeats in every later one.
  // kFailedPrecondition if the sequence's state has another epoch, or if there is no state because a step failed while
  // the model ran.
  uint64_t epoch = 0;
  // Null: no row moves. The caller keeps it until the run ends. kFailedPrecondition unless the sequence was made with
  // rows = true, kInvalidArgument for a row out of range.
  const SequenceRows* rows = nullptr;
};

struct LoadOptions {
  std::string model_name;  // in the archive; "" as in Package::model
  std::vector<Device> devices{Device{}};
  // Replicas per device. If a model writes its buffers, each replica has its own copy of them; more than one replica
  // then makes sense only if requests choose a replica (for example by an affinity key per session).
  int replicas = 1;
  // OpenMP threads that a replica may use for operators outside compiled kernels. 0: as many as the package was
  // compiled for, but at most one per core of the process. Compiled kernels always get the number of threads that they
  // were compiled with.
  int threads = 0;
  // Cores to pin replica threads to, divided among the replicas; empty: not pinned. A pinned replica runs only on its
  // replica thread. That thread touches the replica's memory first, so the memory lies on the NUMA node of its cores.
  std::vector<int> cpu_set;
  // Checks static sizes, ranges, equal symbols and strides of inputs. Count, dtype and rank are always checked.
  bool check_inputs = true;
  // With check_inputs, also reads integer inputs that the package marks as indices (sconce.export records them), and
  // refuses indices out of bounds before the run. Inputs on a device are copied to the host for this. On a GPU an
  // index out of bounds would make the device unusable for the process.
  bool check_indices = true;
  // Memory access faults and illegal instructions of the model's code, in runs, until the model fails. A failed model
  // refuses all runs with kUnavailable, since the code may have overwritten other memory. 0: no limit. Failed checks
  // of the code and divisions by zero do not count, because inputs cause them and they overwrite nothing. Without
  // guard_package_faults() the first such fault ends the process.
  int max_code_faults = 100;
  bool verify = false;  // also compares the CRC of weights
  // Does the one-time work of first runs in advance: new weights are packed before they are published, and if `trial`
  // has a program, load() makes a warm-up run of a CPU model with at least 1 MiB of weights (Model::warm_up()), after
  // a child process has completed the same run. Constants are always folded before load() returns and before new
  // weights are published.
  bool warm_up = true;
  // Program and limits of that child process. Without a program, a load runs nothing and the first runs pack weights.
  // If the child fails, ends by a signal or exceeds a limit, the model is loaded without a warm-up run, and
  // ModelInfo::no_warm_up has the reason.
  TrialSettings trial;
  // For CUDA models: outputs arrive in pinned host memory. Otherwise they are tensors on the device.
  bool host_outputs = true;
  // CUDA graphs that each replica keeps, one per shape of inputs that it has run a few times; 0: none. A model that
  // reads device values on the host or draws random numbers runs without graphs; ReplicaInfo::no_graphs has the
  // reason.
  int cuda_graphs = 8;
  // Lets float32 matrix products on CUDA devices round their operands to TF32 (10 bits), which is several times
  // faster: PyTorch's torch.backends.cuda.matmul.allow_tf32. A package does not record this setting; its own kernels
  // use the setting they were compiled with.
  bool allow_tf32 = false;
  // Named sets of weights that the model may hold besides the active one; 0: none.
  int sets = 0;
  // Bytes of memory that named sets may take beyond the active set; 0: no limit. Above the limit, the least recently
  // requested sets are evicted from memory, if sets_folder is set.
  uint64_t sets_memory = 0;
  // A folder that only this model uses. It has a file for each named set, with the constants that differ from the
  // package. Sets of an earlier process are found there. Empty: sets live in memory only.
  std::filesystem::path sets_folder;
  // Model instances of named sets that each replica keeps.
  int sets_instances = 16;
  // Sequences that may have a slot at the same time, over all replicas; 0: none. A slot holds the buffers that the
  // model writes, a model instance, folded constants and CUDA graphs.
  int sequences = 0;
  // Bytes that the buffers of all sequences together may take; 0: no limit.
  uint64_t sequences_memory = 0;
  // True: a sequence continues with new weights once they are active, and keeps its buffers. False: it ends with the
  // set it began with. Sequences of a named set always keep their set.
  bool sequences_follow = false;
  std::vector<std::filesystem::path> op_libraries;
};

// The output of which only the last rows are needed.
struct OutputRows {
  int output = -1;  // -1: none
  LastRows rows;
};

struct ModelInfo {
  ModelSpec spec;    // inputs, outputs and constants, completed from the .so
  int replicas = 0;  // as loaded; Model::replicas() lists the current ones
  std::vector<Device> devices;
  std::chrono::nanoseconds load_time{};
  uint64_t constant_bytes = 0;  // of one constant set
  std::string no_warm_up;       // why a due warm-up run did not happen or failed: the first requests then take longer
};

// The result of a warm-up run.
struct WarmUp {
  uint64_t inputs = 0;  // digest of the inputs; 0: there were none
  std::string problem;  // why the model did not run or why its run failed; empty: it ran
};

struct RunInfo {
  uint64_t weight_version = 0;               // of the constant set of this run
  std::shared_ptr<const std::string> label;  // label of the run's set; null if it has none
  std::shared_ptr<const std::string> set;    // its name; null: the active set
  int replica = -1;
  std::chrono::nanoseconds queue{};  // from submit to start
  std::chrono::nanoseconds compute{};
  std::chrono::steady_clock::time_point ended{};  // when the outputs were complete
};

// A run on a replica thread. The caller owns the request and the memory of its spans until finished() is called.
class RunRequest {
 public:
  virtual ~RunRequest() = default;
  std::span<const Tensor> inputs;  // in the model's flat order
  std::span<Tensor> outputs;       // set by the run; undefined if the model returns None
  // Requests with the same key go to the same replica, as long as it exists. 0: the least loaded replica.
  uint64_t affinity = 0;
  // Runs with this named set of the same model, which the caller keeps alive. Null: with the active set.
  const WeightSet* weights = nullptr;
  // With a sequence, the run uses the sequence's replica, and `affinity` is ignored.
  SequenceStep step;
  // The only replica that may run the request; -1: any. kUnavailable if there is no such replica.
  int replica = -1;
  // Leaves outputs on the device that ran the model, regardless of LoadOptions::host_outputs.
  bool device_outputs = false;
  // For a model on a device: copies only the last rows of this output to the host, directly after the run, in place of
  // the output. The other outputs follow device_outputs and host_outputs. An output without such rows is copied whole.
  // A model on the CPU returns the output unchanged.
  OutputRows last_rows;
  RunInfo info;
  std::exception_ptr error;  // set instead of outputs
  // Called on the replica thread once the request has a replica: the last moment to set inputs and outputs. Returns
  // false to skip the run. May throw. Not called if the request fails earlier.
  virtual bool starting() { return true; }
  // Called on the replica thread after starting(), unless that returned false. Inputs may still be set. The calling
  // thread's device, stream and memory are those of the run, and device work started here precedes the run's. May
  // throw.
  virtual void preparing() {}
  // Called on the replica thread after a successful run. May throw.
  virtual void ran() {}
  // Called once, on the replica thread, or in submit() if that thread cannot be started. Must not block or throw.
  virtual void finished() noexcept = 0;

 private:
  friend class runner::ReplicaThread;
  RunRequest* next_ = nullptr;
  std::chrono::steady_clock::time_point submitted_{};
};

// A separate replica with one constant set. Serving requests neither wait for its runs nor see them. Keeps the model
// and the set's values in memory. Used by one thread at a time.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;
  // As Model::run(), always on the calling thread. The rehearsal has its own copy of the buffers that the model
  // writes: they start with the set's values and keep the values that runs write.
  virtual RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;
};

struct ReplicaInfo {
  int index = 0;
  Device device;
  std::vector<int> cpus;  // empty: not pinned
  int64_t load = 0;       // requests queued or running on its thread
  int graphs = 0;         // CUDA graphs that it has recorded
  uint64_t graph_runs = 0;
  std::string no_graphs;  // why its runs are not recorded as graphs; empty: they may be
  std::string failure;    // the error that lost its device; empty: it works
};

using ConstantMap = std::map<std::string, Tensor, std::less<>>;

// Thread-safe. At most one weight update is under way: a second caller gets kBusy with the name of the first. An
// update from begin_update() lasts until its set is committed or aborted, or until it is destroyed unfinished.
class Model : public std::enable_shared_from_this<Model> {
 public:
  // Loads a model and makes it ready: preflight, container, constants, folding. Throws the errors of Package::open,
  // kIncompatible with every reason why the model cannot run here, kModelFailed and kOutOfMemory.
  static std::shared_ptr<Model> load(std::shared_ptr<const Package> package, LoadOptions options = {});
  ~Model();  // waits for running requests

  const ModelInfo& info() const noexcept;

  // Runs the model and returns when the outputs are complete. Uses the calling thread if a replica is idle and the
  // model's kernels are single-threaded, else a replica thread. outputs.size() must be the model's. Inputs that the
  // model writes are written in place. kInvalidArgument names the input, the expected and the actual value;
  // kModelFailed has the model's own message. weights, step, device_outputs: as in RunRequest.
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity = 0,
              const WeightSet* weights = nullptr, const SequenceStep& step = {}, bool device_outputs = false);
  // Runs the model once on dummy inputs, on the first replica. This packs its weights for all replicas and touches the
  // memory of runs. It changes no buffer and draws no random number; a model that calls operators of a library is not
  // run. Dummy inputs may crash the model and the process, so a child process calls this first (TrialProcess).
  // expected: runs only if the digest of the inputs equals this one, which the child's WarmUp had.
  WarmUp warm_up(std::optional<uint64_t> expected = std::nullopt);
  // Queues the request on the replica thread with the least load, or on that of its affinity. The request receives all
  // errors, also those of its arguments.
  void submit(RunRequest& request);

  // Whether run() uses the calling thread (it does not while all replicas are busy). Costs one atomic load.
  bool runs_on_caller() const noexcept;

  // Throws the error that run() would throw for these inputs, without running.
  void check_inputs(std::span<const Tensor> inputs) const;

  // Takes a slot on the replica with the fewest sequences. kFailedPrecondition if the model has none
  // (LoadOptions::sequences) or writes no buffers; kQueueFull if all are taken; kUnavailable if no replica works.
  // rows: its steps may set rows aside (SequenceStep::rows), so its buffers count twice; kFailedPrecondition if the
  // buffers have no common first dimension.
  std::shared_ptr<Sequence> make_sequence(bool rows = false);
  // Bytes of the buffers that the model writes, for one sequence.
  uint64_t sequence_bytes() const noexcept;
  // The size of the first dimension, if all buffers that the model writes have the same; else 0.
  int64_t sequence_rows() const noexcept;

  // Weights. Names are FQNs, or a constant's own name if it has no FQN. Each replica has its own copy of the buffers
  // that the model writes: an update or rollback keeps their current values unless the update names them.
  uint64_t weight_version() const noexcept;
  std::vector<ConstantSpec> constants() const;

  // The two phases of sconce/weights.h. If one fails, the served set stays unchanged.
  std::unique_ptr<WeightUpdate> begin_update(UpdateOptions options);  // keeps the model alive; kBusy, kInvalidArgument
  // Makes the staged set active and the active one previous. Runs that start from now on use the new set. Returns its
  // weight version once no run uses the old set. kFailedPrecondition if nothing is staged. weight_version: the number
  // of the new set, which must be above that of the active set (kInvalidArgument); 0: the next number.
  uint64_t commit_weights(uint64_t weight_version = 0);
  void abort_weights();  // drops the staged set; kFailedPrecondition if there is none
  // Exchanges the previous and the active set, under a new weight version. kFailedPrecondition if there is no previous
  // set.
  uint64_t rollback_weights();
  // Gives the active set a larger number, so that processes that serve the same set report the same number. Runs that
  // end from now on report it. kInvalidArgument unless it is above that of the active set.
  void set_weight_version(uint64_t weight_version);
  void release_previous();                         // frees the previous set, if there is one
  std::vector<WeightSetInfo> weight_sets() const;  // the active one first
  // "sha-256:HEX" of a set; equal values have the same digest on every host (docs/weights.md). kFailedPrecondition if
  // there is no such set.
  std::string weights_digest(WeightState state) const;
  // Compares the constants of the active set (`a`) with those of another set, in the order of their names. Reads all
  // bytes that the two sets do not share. kFailedPrecondition if there is no such set.
  std::vector<TensorDifference> weights_difference(WeightState other) const;
  // Prepares runs of a set that does not serve, on the device of the first working replica. kFailedPrecondition if
  // there is no such set or one of its constants has no value; kOutOfMemory; kUnavailable.
  std::unique_ptr<Rehearsal> rehearse(WeightState state) const;
  // As above, for a named set of this model. kInvalidArgument for a set of another model.
  std::unique_ptr<Rehearsal> rehearse(const std::shared_ptr<const WeightSet>& set) const;
  // The set as a source of weights, for example to write a file. kFailedPrecondition if there is no such set.
  std::unique_ptr<WeightSetFile> open_weights(WeightState state) const;
  // The set's tensors by name, as the model keeps them, on the host. For the active set, buffers that the model writes
  // are those of a replica, as its runs left them. kFailedPrecondition if there is no such set.
  ConstantMap extract_constants(WeightState state) const;

  // Named sets (docs/named_sets.md). kNotFound for an unknown name. Null: the set is on disk, and bring_set() reads it.
  std::shared_ptr<const WeightSet> find_set(std::string_view name) const;
  // Whether a replica needs only microseconds to prepare its first run of a set, according to past measurements.
  bool binds_quickly() const noexcept;
  // Reads the set and waits for it. kOutOfMemory if it does not fit; kIo, kCorruptPackage; kFailedPrecondition for the
  // set of another package.
  std::shared_ptr<const WeightSet> bring_set(std::string_view name);
  std::vector<NamedSetInfo> named_sets() const;  // by name
  NamedSetInfo named_set(std::string_view name) const;
  // As weights_digest() and open_weights(). Reads the set from disk as bring_set() does, if necessary.
  std::string set_digest(std::string_view name);
  std::unique_ptr<WeightSetFile> open_set(std::string_view name);
  NamedSetsMemory named_sets_memory() const;
  // The two phases of a named set (UpdateOptions::hold). Gives the name to the pending set and returns that set's
  // weight version. kFailedPrecondition if none is pending; kIo, and then nothing has changed.
  uint64_t commit_set(std::string_view name);
  void abort_set(std::string_view name);  // drops the pending set; kFailedPrecondition if there is none
  // Restores the set that commit_set() replaced, under a new weight version, which is returned; a name that was new is
  // removed. The replaced set is kept until another set gets the name and, without a folder, only until its memory is
  // needed. kFailedPrecondition, kIo.
  uint64_t restore_set(std::string_view name);
  // Gives the set a larger number, in its file too, so that servers that hold the same set report the same number.
  // kBusy if its weight version is no longer `from`, or another set is pending for the name; kInvalidArgument if `to`
  // is not larger; kNotFound, kIo.
  void set_weight_version(std::string_view name, uint64_t from, uint64_t to);
  // Removes the name. Runs that already use the set keep it until they end.
  void remove_set(std::string_view name);
  // Makes the named set's weights active, as commit_weights() does with a staged set. The name stays.
  uint64_t promote_set(std::string_view name);

  // Adds a replica while others serve. It gets the lowest free index. kInvalidArgument for cores that the process may
  // not use, kUnsupported for the device; errors of load().
  int add_replica(Device device, std::vector<int> cpus = {});
  // Waits for the replica's requests, then removes it. kNotFound; kFailedPrecondition for the last one.
  void remove_replica(int index);
  std::vector<ReplicaInfo> replicas() const;
  // Frees memory that replicas have cached for runs and not used since the last call. Meant to be called every few
  // seconds. Does not wait for runs, and does nothing during an update or while a replica is being added.
  void give_back_idle_memory() noexcept;
  // Whether every replica has lost its device (for example by an illegal address): all runs fail until the process is
  // restarted. Costs one atomic load.
  bool failed() const noexcept;
  // Whether the model's code has faulted LoadOptions::max_code_faults times: all runs are refused until the model is
  // loaded again. Costs one atomic load.
  bool code_failed() const noexcept;
  // Why runs fail after the package's file was written in place and its old content could not be preserved
  // (docs/security.md); empty: they do not fail. The model must be loaded again.
  std::string package_fault() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sconce
