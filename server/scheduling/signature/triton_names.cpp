#include "server/scheduling/signature/triton_names.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

std::string text_of(std::string_view datatype, const std::vector<int64_t>& shape) {
  std::string text(datatype);
  for (size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? " [" : ", ") + std::to_string(shape[d]);
  return text + (shape.empty() ? " []" : "]");
}

// Whether a tensor can have both descriptions.
bool agree(const std::vector<int64_t>& said, const TensorInterface& tensor) {
  if (!tensor.shape_known) return true;
  if (said.size() != tensor.shape.size()) return false;
  for (size_t d = 0; d < said.size(); ++d)
    if (said[d] != -1 && tensor.shape[d] != -1 && said[d] != tensor.shape[d]) return false;
  return true;
}

TensorNames named(const std::vector<TritonTensor>& said, bool batched, const TensorNames& names,
                  const std::vector<TensorInterface>& tensors, std::string_view what) {
  if (said.empty()) return names;
  SCONCE_CHECK(said.size() == tensors.size(), kInvalidArgument, "the file has ", said.size(), " fields ", what,
               ", the package ", tensors.size(), ": ", excerpt(names.list()));
  std::vector<std::string> taken(tensors.size());
  for (size_t i = 0; i < said.size(); ++i) {
    const size_t at = names.find(said[i].name).value_or(i);
    SCONCE_CHECK(taken[at].empty(), kInvalidArgument, what, " '", excerpt(taken[at]), "' and '", excerpt(said[i].name),
                 "' are one tensor of the package, ", names.name(at));
    taken[at] = said[i].name;
    const TensorInterface& tensor = tensors[at];
    std::vector<int64_t> shape = said[i].dims.value_or(tensor.shape);
    if (batched && said[i].dims) shape.insert(shape.begin(), -1);
    const bool same = said[i].datatype.empty() || !tensor.dtype || said[i].datatype == tensor.datatype;
    SCONCE_CHECK(same && agree(shape, tensor), kInvalidArgument, what, " '", excerpt(said[i].name), "' is ",
                 text_of(said[i].datatype, shape), " there, in the package ", text_of(tensor.datatype, tensor.shape),
                 " (", names.name(at), ")");
  }
  return names.renamed(std::move(taken));
}

ControlInput::Kind kind_of(TritonControl::Kind kind) noexcept {
  switch (kind) {
    case TritonControl::Kind::kStart:
      return ControlInput::Kind::kStart;
    case TritonControl::Kind::kEnd:
      return ControlInput::Kind::kEnd;
    case TritonControl::Kind::kReady:
      return ControlInput::Kind::kReady;
    case TritonControl::Kind::kId:
      return ControlInput::Kind::kId;
  }
  return ControlInput::Kind::kReady;
}

// Whether a first dimension is rows: it is variable, or all buffers that the model writes have that size.
bool are_rows(const ModelSignature& interface, int64_t size) {
  if (size == -1) return true;
  const std::vector<ConstantSpec>& constants = interface.spec.constants;
  return interface.mutates_constants && std::all_of(constants.begin(), constants.end(), [&](const ConstantSpec& c) {
           return !c.mutated || (!c.shape.empty() && c.shape[0] == size);
         });
}

void check_control(const TritonControl& said, const ControlInput& control, const ModelSignature& interface) {
  const TensorInterface& tensor = interface.inputs[control.input];
  const bool fits = tensor.dtype && tensor.datatype == said.datatype && can_be_control(control.kind, *tensor.dtype);
  SCONCE_CHECK(fits, kInvalidArgument, "control '", excerpt(said.name), "' is ", said.datatype, " as ",
               control_kind_name(control.kind), ", in the package ", text_of(tensor.datatype, tensor.shape));
  bool single = tensor.shape_known;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    single = single && (tensor.shape[d] == 1 || (d == 0 && are_rows(interface, tensor.shape[d])));
  SCONCE_CHECK(single, kInvalidArgument, "control '", excerpt(said.name),
               "' needs an input with one element in each row, in the package it is ",
               text_of(tensor.datatype, tensor.shape));
}

}  // namespace

void take_names(const TritonConfig& config, ModelSignature& interface) {
  const bool batched = config.max_batch_size > 0;
  std::vector<TritonTensor> inputs = config.inputs;
  // Controls are inputs of the package too. Controls whose names the package does not know come after the other inputs.
  for (const TritonControl& control : config.controls) {
    SCONCE_CHECK(!config.inputs.empty() || interface.input_names.find(control.name), kInvalidArgument, "control '",
                 excerpt(control.name), "' is no input of the package, which has ",
                 excerpt(interface.input_names.list()), "; fields input would identify them");
    inputs.push_back({control.name, control.datatype, std::nullopt});
  }
  if (!config.inputs.empty())
    interface.input_names = named(inputs, batched, interface.input_names, interface.inputs, "input");
  for (const TritonControl& control : config.controls) {
    interface.controls.push_back(
        {kind_of(control.kind), *interface.input_names.find(control.name), control.off, control.on});
    check_control(control, interface.controls.back(), interface);
  }
  interface.parameters = config.parameters;
  interface.metric_tags = config.metric_tags;
  interface.output_names = named(config.outputs, batched, interface.output_names, interface.outputs, "output");
}

}  // namespace sconce::server::scheduling
