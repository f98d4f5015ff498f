#include "server/signature/output_probe.h"

#include "server/signature/probe_inputs.h"

namespace sconce::server {
namespace {

constexpr int64_t kMaxProbed = int64_t{1} << 24;

}  // namespace

void probe_outputs(Model& model, ModelInterface& interface) {
  if (interface.mutates_constants || model.info().devices.front().type != DeviceType::kCpu) return;
  const ProbeInputs first = make_probe_inputs(interface, ProbeSizes(0), kMaxProbed),
                    second = make_probe_inputs(interface, ProbeSizes(1), kMaxProbed);
  if (first.problem != ProbeInputs::Problem::kNone || second.problem != ProbeInputs::Problem::kNone) return;
  std::vector<Tensor> outputs(interface.outputs.size()), others(interface.outputs.size());
  model.run(first.tensors, outputs);
  model.run(second.tensors, others);
  interface.observe_outputs(outputs, others, first.batch, second.batch);
}

}  // namespace sconce::server
