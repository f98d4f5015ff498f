// Runner: a loaded model: its code, its replicas, its weights, and the runs of all three.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sconce/model.h"
#include "src/runner/set_runs.h"

namespace sconce::runner {

class CodeLoad;

// Thread-safe.
class Runner {
 public:
  // The errors of Model::load().
  Runner(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options);
  ~Runner() { versions_.close(); }

  // See sconce/model.h. `owner` owns the runner, and is kept by the result.
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, uint64_t affinity, const WeightSet* weights,
              const SequenceStep& step, bool device_outputs);
  void submit(RunRequest& request) noexcept;
  void check_inputs(std::span<const Tensor> inputs) const {
    code_.input_check(inputs);
    code_.index_check.of_host(inputs);
  }
  WarmUp warm_up(std::optional<uint64_t> expected);
  std::unique_ptr<WeightUpdate> begin_update(UpdateOptions options, std::shared_ptr<void> owner);
  // set: null for the model's own weights.
  std::unique_ptr<Rehearsal> rehearse(WeightState state, const WeightSet* set, std::shared_ptr<const void> owner) const;

  const ModelCode& code() const noexcept { return code_; }
  ReplicaPool& replicas() noexcept { return pool_; }
  SequenceRuns& sequences() noexcept { return sequences_; }
  WeightVersions& versions() noexcept { return versions_; }
  SetRuns& sets() noexcept { return sets_; }

 private:
  Runner(CodeLoad&& load, const LoadOptions& options);
  // Runs the model at load, after a child process did. Returns why it did not run; empty: it did.
  std::string warm_up_after_trial(CodeLoad& load, const LoadOptions& options);
  // What a replica's thread does for a request.
  void serve(ReplicaSlot& slot, RunRequest& request);
  // By the slot's holder.
  void check_device_indices(ReplicaSlot& slot, std::span<const Tensor> inputs) const;
  void run_on(ReplicaSlot& slot, const WeightSet* weights, const SequenceStep& step, const RunCall& call);

  ModelCode code_;
  const PackageWatch package_watch_;
  ReplicaPool pool_;
  SequenceRuns sequences_;
  WeightVersions versions_;
  SetRuns sets_;
};

}  // namespace sconce::runner
