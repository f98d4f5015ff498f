#include "src/runner/warm_up.h"

#include <algorithm>
#include <cstring>
#include <future>

#include "sconce/check.h"
#include "src/custom_ops/registry.h"
#include "src/device/made_up_run.h"
#include "src/runner/runner.h"
#include "src/shim/guard.h"
#include "src/tensor/fill.h"

namespace sconce::runner {
namespace {

constexpr int64_t kFreeSize = 16;
constexpr int64_t kMostElements = int64_t{1} << 24;

Tensor made_up_input(const TensorSpec& spec) {
  SCONCE_CHECK(spec.has_shape && spec.dtype && spec.strides.size() == spec.dims.size(), kUnsupported, "input '",
               spec.name, "' is not described in full");
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (const Dim& dim : spec.dims) {
    sizes.push_back(dim.is_static() ? dim.min : std::clamp(kFreeSize, std::max<int64_t>(dim.min, 1), dim.max));
    SCONCE_CHECK(!__builtin_mul_overflow(elements, sizes.back(), &elements) && elements <= kMostElements, kUnsupported,
                 "input '", spec.name, "' is too large to be made up");
  }
  Tensor input = Tensor::empty_strided(sizes, strides_for(spec, sizes), *spec.dtype);
  if (input.storage()->bytes() > 0) std::memset(input.storage()->data(), 0, input.storage()->bytes());
  // Integers are ones: an index that is in range, and no divisor that ends the process.
  if (is_floating(*spec.dtype))
    fill(input, 0.5);
  else
    fill(input, int64_t{1});
  return input;
}

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

std::vector<Tensor> made_up_inputs(const std::vector<TensorSpec>& specs) {
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : specs) inputs.push_back(made_up_input(spec));
  return inputs;
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
      const std::vector<Tensor> inputs = made_up_inputs(info_.spec.inputs);
      // What the model writes to its buffers must not stay.
      std::unique_ptr<BoundContainer> own;
      if (table_->any_mutated()) own = slot.replica->bind(module_, *table_, *served.set, {}, nullptr, nullptr);
      BoundContainer& bound = own ? *own : *served.bound[slot.index];
      std::vector<Tensor> outputs(bound.container->num_outputs());
      const MadeUpRun made_up;
      slot.replica->run(bound, inputs, outputs, false);
    });
    const std::optional<shim::ShimError> error = shim::take_error();
    return !failed ? "" : error ? error->text : "a run on made-up inputs: no memory is left";
  };
  // Runs that take several threads are a lane's. If this thread kept a team of OpenMP's for ever, there would be more
  // threads than cores, and libgomp's threads would sleep at each barrier instead of spinning.
  return on_caller_ ? run() : std::async(std::launch::async, run).get();
}

}  // namespace sconce::runner
