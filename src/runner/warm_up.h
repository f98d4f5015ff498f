// The run at load that does ahead what the first request would wait for: it packs weights, which all replicas share,
// and touches the memory that runs use. Nobody sent its inputs, so a child process makes the same run first.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sconce/model.h"
#include "sconce/trial/trial_process.h"

namespace sconce::runner {

// Bytes of constants from which on a load runs the model: preparing fewer takes the first request moments, and a load
// of so small a model takes less than a run may.
constexpr uint64_t kWarmUpBytes = uint64_t{1} << 20;

// Why runs on made-up inputs could leave a trace; empty: they leave none as far as the package says.
std::string why_no_dummy_run(const ModelSpec& spec);

// The inputs of a warm-up run: the same bytes in every process. The errors of dummy_inputs().
std::vector<Tensor> warm_up_inputs(const ModelSpec& spec);
// A digest of dtypes, sizes and bytes of dense tensors in host memory; never 0.
uint64_t digest_of_inputs(std::span<const Tensor> inputs);

// The trial of a warm-up run, for loads of this library: a child process makes the run first.
class WarmUpTrial {
 public:
  // Starts the child. The errors of TrialProcess.
  WarmUpTrial(const Package& package, const ModelSpec& spec, const LoadOptions& options);
  // Waits. `inputs` is the digest of the inputs that the child has run to their end, or 0, and then there is a problem.
  WarmUp wait();

 private:
  TrialProcess child_;
};

}  // namespace sconce::runner
