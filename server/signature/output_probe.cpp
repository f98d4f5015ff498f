#include "server/signature/output_probe.h"

#include "sconce/made_up_inputs.h"

namespace sconce::server {
namespace {

OutputProbe::Run run_on(Model& model, const ModelInterface& interface, MadeUpSizes sizes) {
  sizes.bounds = interface.spec.bounds;
  const std::vector<Tensor> inputs = made_up_inputs(interface.spec.inputs, sizes);
  std::vector<Tensor> outputs(interface.outputs.size());
  model.run(inputs, outputs);
  OutputProbe::Run run;
  run.batch = interface.batch_symbol().empty() ? 0 : inputs[0].size(0);
  for (const Tensor& output : outputs) {
    OutputProbe::Output& seen = run.outputs.emplace_back();
    if (!output.defined()) continue;
    seen = {.none = false, .dtype = output.dtype(), .sizes = {output.sizes().begin(), output.sizes().end()}};
  }
  return run;
}

}  // namespace

bool probes_outputs(const ModelInterface& interface, DeviceType device) noexcept {
  return !interface.outputs_described() && !interface.mutates_constants && device == DeviceType::kCpu;
}

OutputProbe probe_outputs(Model& model, const ModelInterface& interface) {
  OutputProbe probe;
  probe.first = run_on(model, interface, {.others = 1, .step = 2});
  probe.second = run_on(model, interface, {.others = 1, .shift = 1, .step = 2});
  return probe;
}

}  // namespace sconce::server
