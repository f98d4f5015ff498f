#include "server/signature/output_probe.h"

#include "sconce/made_up_inputs.h"

namespace sconce::server {

void probe_outputs(Model& model, ModelInterface& interface) {
  if (interface.mutates_constants || model.info().devices.front().type != DeviceType::kCpu) return;
  const std::vector<TensorSpec>& specs = interface.spec.inputs;
  const std::vector<Tensor> first = made_up_inputs(specs, {.others = 1, .step = 2}),
                            second = made_up_inputs(specs, {.others = 1, .shift = 1, .step = 2});
  std::vector<Tensor> outputs(interface.outputs.size()), others(interface.outputs.size());
  model.run(first, outputs);
  model.run(second, others);
  const auto batch = [&](const std::vector<Tensor>& inputs) {
    return interface.batch_symbol().empty() ? 0 : inputs[0].size(0);
  };
  interface.observe_outputs(outputs, others, batch(first), batch(second));
}

}  // namespace sconce::server
