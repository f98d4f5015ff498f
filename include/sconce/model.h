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

// A place for the state of one sequence, which is runs that continue one another, on one replica: the buffers that the
// model writes, as the sequence's runs left them. Made by Model::make_sequence(), keeps the model alive, and frees its
// place when it is destroyed; no run may have it then. A sequence keeps the set of weights with which it began
// (LoadOptions::sequences_follow), also in memory.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // The replica that runs its steps; a number that a later replica may get again.
  virtual size_t replica() const noexcept = 0;
};

// What becomes of rows before a step runs: of the first dimension of each buffer that the model writes, for a model
// whose rows are states of their own (Model::sequence_rows()). A row is in one of the lists, or in both `set_aside` and
// `reset`.
struct SequenceRows {
  std::span<const uint32_t> set_aside;  // copied to memory of the sequence's, where no run changes them
  std::span<const uint32_t>
      bring_back;                   // as they were when they were set aside last; kFailedPrecondition: they never were
  std::span<const uint32_t> reset;  // to the values that they have in the set of weights
};

// Makes a run a step of a sequence. Steps that are submitted one after the other run in this order.
struct SequenceStep {
  Sequence* sequence = nullptr;  // the caller keeps it; null: the run uses the replica's own buffers
  // The buffers first get their initial values, and the sequence the set of weights that the run asks for.
  bool begins = false;
  // Which beginning the step continues: a number of the caller's, the same in the step that began. kFailedPrecondition
  // if the sequence's state is of another one, or if there is none because a step failed while the model ran.
  uint64_t life = 0;
  // Null: no row moves. The caller keeps it until the run is over. kFailedPrecondition unless the sequence was made
  // with room for rows, kInvalidArgument for a row that there is not.
  const SequenceRows* rows = nullptr;
};

struct LoadOptions {
  std::string model_name;  // in the archive; "" as in Package::model
  std::vector<Device> devices{Device{}};
  // Per device. If a model writes its buffers, each replica has its own copy of them: ask for more than one only if
  // that is wanted (say, with an affinity key per session).
  int replicas = 1;
  // OpenMP threads that a replica may use for operators outside compiled kernels. 0: as many as the package was
  // compiled for, but no more than the process has cores. Compiled kernels always get the number they were compiled
  // with.
  int threads = 0;
  // Cores to pin lanes to, divided among the replicas; empty: not pinned. A pinned replica runs on its lane only, and
  // its lane touches its memory first, so that this lies on the NUMA node of its cores.
  std::vector<int> cpu_set;
  // Checks static sizes, ranges, equal symbols and strides of inputs. Count, dtype and rank are always checked.
  bool check_inputs = true;
  // With check_inputs, also looks at integer inputs that the package says are indices (sconce.export records them), and
  // refuses those out of bounds before the run. Tensors on a device are fetched for that. On a GPU an index out of
  // bounds would end the process's use of the device.
  bool check_indices = true;
  // How many runs may end because the model's code accessed memory that it may not, or met an instruction that this CPU
  // lacks, before the model fails: later runs are refused with kUnavailable, since nobody knows what else the code has
  // overwritten. 0: any number. Checks of the code that fail and divisions by zero are not counted, as inputs cause
  // them and they overwrite nothing. Without guard_package_faults() the first such access ends the process.
  int max_code_faults = 100;
  bool verify = false;  // compares the CRC of weights too
  // Does ahead what the first runs would wait for: new weights are packed before they are published, and where `trial`
  // has a program, load() makes a warm-up run of a CPU model of at least 1 MiB of weights (Model::warm_up()), after a
  // child process made the same run to its end. Constants are always folded before load() returns and before new
  // weights are published.
  bool warm_up = true;
  // The program and the limits of that child process. Without a program a load runs nothing, and the first runs pack
  // weights. If the child fails, ends by a signal or passes a limit, the model is loaded all the same, and
  // ModelInfo::no_warm_up says why it was not run.
  TrialSettings trial;
  // For CUDA models: outputs arrive in pinned host memory. Otherwise they are tensors on the device.
  bool host_outputs = true;
  // How many CUDA graphs each replica keeps, one for each shape of inputs that it has run a few times; 0: none. A model
  // that reads device values on the host or draws random numbers runs without graphs; ReplicaInfo::no_graphs says so.
  int cuda_graphs = 8;
  // Lets float32 matrix products on CUDA devices round their operands to TF32 (10 bits), which takes a fraction of the
  // time: PyTorch's torch.backends.cuda.matmul.allow_tf32. A package does not record what it was compiled under; its
  // own kernels keep what they were compiled with.
  bool allow_tf32 = false;
  // How many named sets of weights the model may hold besides its own; 0: none.
  int sets = 0;
  // Bytes that named sets may hold in memory beyond the active set; 0: no limit. Beyond it, those that were asked for
  // least lately leave memory, if there is a folder for them.
  uint64_t sets_memory = 0;
  // A folder of this model alone, in which each named set has a file: the constants in which it differs from the
  // package. Sets of an earlier process are found there. Empty: sets live in memory only.
  std::filesystem::path sets_folder;
  // Containers of named sets that each replica keeps.
  int bound_sets = 16;
  // How many sequences may have a place at the same time, on all replicas together; 0: none. A place holds the buffers
  // that the model writes, a container, what is folded and CUDA graphs.
  int sequences = 0;
  // Bytes that the buffers of all sequences together may take; 0: no limit.
  uint64_t sequences_memory = 0;
  // Sequences go on with new weights once these are active; their buffers stay. Otherwise each one ends with the set
  // with which it began. Sequences of a named set always do.
  bool sequences_follow = false;
  std::vector<std::filesystem::path> op_libraries;
};

// An output of which only the last rows are wanted.
struct OutputRows {
  int output = -1;  // -1: none
  LastRows rows;
};

struct ModelInfo {
  ModelSpec spec;    // inputs, outputs and constants, completed from the .so
  int replicas = 0;  // as loaded; Model::replicas() has the present ones
  std::vector<Device> devices;
  std::chrono::nanoseconds load_time{};
  uint64_t constant_bytes = 0;  // of one constant set
  std::string no_warm_up;       // why load() made no run, or it failed, if one was due: the first requests take longer
};

// What a warm-up run did.
struct WarmUp {
  uint64_t inputs = 0;  // a digest of the inputs; 0: there were none
  std::string problem;  // why the model did not run, or how its run failed; empty: it ran
};

struct RunInfo {
  uint64_t generation = 0;                   // of the constant set that answered
  std::shared_ptr<const std::string> label;  // of that set; null if it has none
  std::shared_ptr<const std::string> set;    // its name; null: it was the active one
  int replica = -1;
  std::chrono::nanoseconds queue{};  // from submit to start
  std::chrono::nanoseconds compute{};
  std::chrono::steady_clock::time_point ended{};  // when the outputs were there
};

// A run that a lane performs. The caller owns the request, and what its spans point to, until finished() is called.
class RunRequest {
 public:
  virtual ~RunRequest() = default;
  std::span<const Tensor> inputs;  // in the model's flat order
  std::span<Tensor> outputs;       // set by the run; undefined if the model returns None
  // Requests with the same key go to the same replica, as long as it exists. 0: the least loaded replica.
  uint64_t affinity = 0;
  // Runs with this named set of the same model, which the caller keeps. Null: with the active one.
  const WeightSet* weights = nullptr;
  // If it has a sequence, the run is on that sequence's replica, and `affinity` says nothing.
  SequenceStep step;
  // The only replica that may run the request; -1: any. kUnavailable if there is no such replica.
  int replica = -1;
  // Leaves outputs on the device that ran the model, whatever LoadOptions::host_outputs says.
  bool device_outputs = false;
  // Where the model runs on a device: in the place of this output its last rows come to the host, taken right behind
  // the run, whatever becomes of the other outputs. An output that has no such rows comes to the host whole. A model on
  // the CPU gives it as it is.
  OutputRows last_rows;
  RunInfo info;
  std::exception_ptr error;  // set instead of outputs
  // Called on the lane once the request has a replica: the last moment to set inputs and outputs. Returns false if
  // there is nothing to run. May throw. Not called if the request fails before that.
  virtual bool starting() { return true; }
  // Called on the lane after that, if there is something to run: another last moment, in which the calling thread's
  // device, stream and memory are those of the run. Device work that it starts comes before the run's. May throw.
  virtual void preparing() {}
  // Called on the lane after a successful run. May throw.
  virtual void ran() {}
  // Called once, on the lane, or in submit() if the lane has no thread and cannot start one. Must not block or throw.
  virtual void finished() noexcept = 0;

 private:
  friend class runner::ReplicaThread;
  RunRequest* next_ = nullptr;
  std::chrono::steady_clock::time_point submitted_{};
};

// A replica of its own with one constant set, beside those that serve: no request waits for its runs or sees them. It
// keeps the model and the set's values in memory. Used by one thread at a time.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;
  // As Model::run(), always on the calling thread. Buffers that the model writes are the rehearsal's own: they begin
  // with the set's values and keep what runs write.
  virtual RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;
};

struct ReplicaInfo {
  int index = 0;
  Device device;
  std::vector<int> cpus;  // empty: not pinned
  int64_t load = 0;       // requests queued or running on its lane
  int graphs = 0;         // CUDA graphs that it keeps
  uint64_t graph_runs = 0;
  std::string no_graphs;  // why its runs are not recorded; empty: they may be
  std::string failure;    // the error by which its device was lost; empty: it works
};

// One of a model's two constant sets: the one that runs use, or the other.
enum class SetRole : int8_t { kActive, kInactive };

using ConstantMap = std::map<std::string, Tensor, std::less<>>;

// Thread-safe. Only one weight update happens at a time: a second caller gets kBusy with the name of the first. An
// update from begin_update() lasts until its set is committed or aborted, or until it is destroyed unfinished.
class Model : public std::enable_shared_from_this<Model> {
 public:
  // Loads a model and makes it ready: preflight, container, constants, folding. Throws the errors of Package::open,
  // kIncompatible with every reason why the model cannot run here, kModelFailed and kOutOfMemory.
  static std::shared_ptr<Model> load(std::shared_ptr<const Package> package, LoadOptions options = {});
  ~Model();  // waits for running requests

  const ModelInfo& info() const noexcept;

  // Runs the model and returns when it is done: on the calling thread if a replica is free and its kernels are
  // single-threaded, else on a lane. outputs.size() must be the model's. Inputs that the model writes are written in
  // place. kInvalidArgument names the input, what was expected and what came; kModelFailed has the model's own message.
  // weights, step, device_outputs: as in RunRequest.
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity = 0,
              const WeightSet* weights = nullptr, const SequenceStep& step = {}, bool device_outputs = false);
  // Runs the model once on made-up inputs, on the first replica: that packs its weights for all replicas and touches
  // the memory of runs. It changes no buffer and draws no random number; a model that calls operators of a library is
  // not run. Nobody vouches for such inputs: they may end the process, so a child process calls this first
  // (TrialProcess). expected: runs only if the inputs have this digest, which the child's WarmUp had.
  WarmUp warm_up(std::optional<uint64_t> expected = std::nullopt);
  // Queues the request on the lane of the least loaded replica, or of the replica of its affinity. The request receives
  // all errors, those of its arguments too.
  void submit(RunRequest& request);

  // Whether run() uses the calling thread, except while all replicas are busy. Costs one atomic load.
  bool runs_on_caller() const noexcept;

  // Throws what run() would throw for these inputs, without running.
  void check_inputs(std::span<const Tensor> inputs) const;

  // A place on the replica with the fewest sequences. kFailedPrecondition if the model has none
  // (LoadOptions::sequences) or writes no buffers; kQueueFull if all are taken; kUnavailable if no replica works.
  // rows: its steps may set rows aside (SequenceStep::rows), so that it counts with twice the bytes of its buffers;
  // kFailedPrecondition if these have none.
  std::shared_ptr<Sequence> make_sequence(bool rows = false);
  // Bytes of the buffers that the model writes: of one sequence.
  uint64_t sequence_bytes() const noexcept;
  // The first dimension that all buffers have which the model writes; 0: there is none.
  int64_t sequence_rows() const noexcept;

  // Weights. Names are FQNs, or a constant's own name if it has no FQN. Each replica has its own buffers that the model
  // writes: an update or rollback keeps their current values unless the update names them.
  uint64_t generation() const noexcept;
  std::vector<ConstantSpec> constants() const;

  // The two phases of sconce/weights.h. If one fails, the served set stays as it is.
  std::unique_ptr<WeightUpdate> begin_update(UpdateOptions options);  // keeps the model alive; kBusy, kInvalidArgument
  // The staged set becomes active, the active one becomes the previous one. Runs that start from now on use the new
  // set. Returns its generation when no run uses the old set any more. kFailedPrecondition if nothing is staged.
  // generation: the number that the set gets, which must be above that of the active set (kInvalidArgument); 0: the
  // next one.
  uint64_t commit_weights(uint64_t generation = 0);
  void abort_weights();  // drops the staged set; kFailedPrecondition if there is none
  // Exchanges the previous and the active set, under a new generation. kFailedPrecondition if there is none.
  uint64_t rollback_weights();
  // The active set gets a larger number, so that models of several processes which serve one set say one number. Runs
  // that end from now on say it. kInvalidArgument unless it is above that of the active set.
  void renumber_weights(uint64_t generation);
  void release_previous();                         // frees the previous set, if there is one
  std::vector<WeightSetInfo> weight_sets() const;  // the active one first
  // "sha-256:HEX" of a set, the same for equal values on any host (docs/weights.md). kFailedPrecondition if there is
  // none.
  std::string weights_digest(WeightState state) const;
  // How far the constants of another set are from the active one's, which is `a`; in the order of their names. Reads
  // all bytes that the two do not share. kFailedPrecondition if there is no such set.
  std::vector<TensorDifference> weights_difference(WeightState other) const;
  // Runs the set before others do, on the device of the first replica that works. kFailedPrecondition if there is no
  // such set or a constant of it has no value; kOutOfMemory; kUnavailable.
  std::unique_ptr<Rehearsal> rehearse(WeightState state) const;
  // The same for a named set of this model. kInvalidArgument for another model's.
  std::unique_ptr<Rehearsal> rehearse(const std::shared_ptr<const WeightSet>& set) const;
  // The set as a source of weights, say for a file. kFailedPrecondition if there is none.
  std::unique_ptr<WeightSetFile> open_weights(WeightState state) const;

  // Named sets (docs/weights.md#many-sets-side-by-side). kNotFound for a name that no set has.
  // Null: the set is on disk, and bring_set() reads it.
  std::shared_ptr<const WeightSet> find_set(std::string_view name) const;
  // Whether a replica that has not run a set lately makes what it needs for that in some microseconds, as far as is
  // known.
  bool binds_quickly() const noexcept;
  // Waits while the set is read. kOutOfMemory if it does not fit; kIo, kCorruptPackage; kFailedPrecondition for the set
  // of another package.
  std::shared_ptr<const WeightSet> bring_set(std::string_view name);
  std::vector<NamedSetInfo> named_sets() const;  // by name
  NamedSetInfo named_set(std::string_view name) const;
  // As weights_digest() and open_weights(). If the set is on disk, it is read as bring_set() does.
  std::string set_digest(std::string_view name);
  std::unique_ptr<WeightSetFile> open_set(std::string_view name);
  NamedSetsMemory named_sets_memory() const;
  // The two phases of a named set (UpdateOptions::hold). The name gets the set that waits for it; returns the set's
  // generation. kFailedPrecondition if none waits; kIo, and then nothing has changed.
  uint64_t commit_set(std::string_view name);
  void abort_set(std::string_view name);  // drops the set that waits; kFailedPrecondition if there is none
  // What commit_set() replaced comes back under a new generation, which is returned; a name that was new goes. It is
  // kept until another set gets the name, and without a folder until its memory is needed. kFailedPrecondition, kIo.
  uint64_t restore_set(std::string_view name);
  // The set gets a larger number, which its file has, too, so that servers which hold one set say one number. kBusy if
  // it has not the generation `from` any more, or another set waits for the name; kInvalidArgument if `to` is not
  // larger; kNotFound, kIo.
  void renumber_set(std::string_view name, uint64_t from, uint64_t to);
  // Nobody finds the set any more; runs that have it end with it.
  void remove_set(std::string_view name);
  // Makes the named set's weights active, as commit_weights() does with a staged set. The name stays.
  uint64_t promote_set(std::string_view name);

  // The updates of AOTInductor's container. The inactive set is the staged or previous set from above, but one that
  // begin_update() staged cannot be changed here (kBusy).
  // Replaces the named constants. full: all must be named, except buffers, tensor constants and empty parameters.
  // Constants that are not named come from the active set, but an inactive set keeps its own parameters. user_managed:
  // tensors are used in place instead of copied. Updating the active set keeps no previous set and does not change the
  // inactive one.
  void update_constants(SetRole role, const ConstantMap& constants, bool full, bool user_managed = false);
  void fold_constants(SetRole role);
  void swap_constants();  // the inactive set becomes active, the active one inactive; kFailedPrecondition if empty
  void free_inactive_constants();
  ConstantMap extract_constants(SetRole role) const;

  // Changes replicas while others serve. A later replica gets the index of a removed one.
  // kInvalidArgument for cores that the process may not use, kUnsupported for the device; errors of load().
  int add_replica(Device device, std::vector<int> cpus = {});
  // Finishes the replica's requests, then removes it. kNotFound; kFailedPrecondition for the last one.
  void remove_replica(int index);
  std::vector<ReplicaInfo> replicas() const;
  // Frees memory that replicas keep for runs and have not needed since the last call. Meant to be called every few
  // seconds. Does not wait for runs, and does nothing while an update or a new replica is being made.
  void give_back_idle_memory() noexcept;
  // Whether every replica has lost its device (by an illegal address, say): all runs fail, and only a new process
  // helps. Costs one atomic load.
  bool failed() const noexcept;
  // Whether the model's code has faulted LoadOptions::max_code_faults times: all runs are refused, and the model must
  // be loaded again. Costs one atomic load.
  bool code_failed() const noexcept;
  // Why runs fail after somebody wrote the package's file in place and its old content could not be kept
  // (docs/security.md); empty: they do not. The model must be loaded again.
  std::string package_fault() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sconce
