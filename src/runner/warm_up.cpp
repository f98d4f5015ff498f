#include "src/runner/warm_up.h"

#include <algorithm>
#include <future>

#include "sconce/made_up_inputs.h"
#include "src/custom_ops/registry.h"
#include "src/device/made_up_run.h"
#include "src/runner/runner.h"
#include "src/shim/guard.h"
#include "src/tensor/fill.h"

namespace sconce::runner {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;  // of a made-up input, on average

}  // namespace

std::string why_no_made_up_run(const ModelSpec& spec) {
  if (spec.loops) return "a loop of its graph may not end with made-up inputs";
  const std::vector<std::string> known =
      spec.proxy_targets.empty() ? std::vector<std::string>() : custom_ops::aten_operators();
  for (const std::string& target : spec.proxy_targets) {
    std::string_view name = target;
    if (name.ends_with(".default")) name.remove_suffix(8);
    if (!std::binary_search(known.begin(), known.end(), name))
      return "it is not known what the operator " + target + " changes";
  }
  for (const std::string& name : spec.imports)
    if (name.ends_with("torch_call_dispatcher")) return "it calls operators by name";
  return {};
}

std::string Runner::warm_up(ReplicaSlot& slot) const {
  if (std::string why = why_no_made_up_run(info_.spec); !why.empty()) return why;
  const MutexLock work(work_mutex_);
  const Generation& served = *active();
  if (!served.missing.empty()) return {};
  const std::vector<int>& cpus = slot.lane.cpus();
  const auto run = [&]() -> std::string {
    if (!cpus.empty()) stay_on(cpus);
    const bool failed = shim::guard("a run on made-up inputs", [&] {
      const std::vector<TensorSpec>& specs = info_.spec.inputs;
      std::vector<Tensor> inputs =
          made_up_inputs(specs, {.most_elements = kMostElements * static_cast<int64_t>(specs.size())});
      // Integers are ones: an index that is in range, and no divisor that ends the process.
      for (Tensor& input : inputs) is_floating(input.dtype()) ? fill(input, 0.5) : fill(input, int64_t{1});
      // What the model writes to its buffers must not stay.
      std::unique_ptr<BoundContainer> own;
      if (table_->any_mutated()) own = slot.replica->bind(module_, *table_, *served.set, {}, nullptr, nullptr);
      BoundContainer& bound = own ? *own : *served.bound[slot.index];
      std::vector<Tensor> outputs(bound.container->num_outputs());
      const MadeUpRun made_up;
      slot.replica->run(bound, inputs, outputs, {});
    });
    const std::optional<shim::ShimError> error = shim::take_error();
    return !failed ? "" : error ? error->text : "a run on made-up inputs: no memory is left";
  };
  // Runs that take several threads are a lane's. If this thread kept a team of OpenMP's for ever, there would be more
  // threads than cores, and libgomp's threads would sleep at each barrier instead of spinning.
  return on_caller_ ? run() : std::async(std::launch::async, run).get();
}

}  // namespace sconce::runner
