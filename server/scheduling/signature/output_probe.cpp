#include "server/scheduling/signature/output_probe.h"

#include "src/runner/dummy_inputs.h"

namespace sconce::server::scheduling {
namespace {

OutputProbe::Run run_on(Model& model, const ModelSignature& interface, DummySizes sizes) {
  sizes.bounds = interface.spec.bounds;
  const std::vector<Tensor> inputs = dummy_inputs(interface.spec.inputs, sizes);
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

bool probes_outputs(const ModelSignature& interface, DeviceType device) noexcept {
  return !interface.outputs_described() && !interface.mutates_constants && device == DeviceType::kCpu;
}

OutputProbe probe_outputs(Model& model, const ModelSignature& interface) {
  OutputProbe probe;
  probe.first = run_on(model, interface, {.others = 1, .step = 2});
  probe.second = run_on(model, interface, {.others = 1, .shift = 1, .step = 2});
  return probe;
}

}  // namespace sconce::server::scheduling
