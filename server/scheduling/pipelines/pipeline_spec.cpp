#include "server/scheduling/pipelines/pipeline_spec.h"

#include "sconce/check.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"
#include "server/support/json_cursor.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

constexpr size_t kMaxSteps = 256;

DType dtype_of(std::string_view datatype) {
  const std::optional<DType> dtype = dtype_from_oip(datatype);
  SCONCE_CHECK(dtype, kInvalidArgument, "unknown datatype '", excerpt(datatype), "'");
  return *dtype;
}

std::vector<int64_t> read_shape(JsonCursor& json) {
  std::vector<int64_t> shape;
  json.array("'shape'", [&](size_t) {
    const double size = json.number("a size");
    SCONCE_CHECK(size >= -1 && size <= 1e15 && size == static_cast<double>(static_cast<int64_t>(size)),
                 kInvalidArgument, "a size in 'shape' must be -1 or a whole number of 0 or more");
    shape.push_back(static_cast<int64_t>(size));
  });
  return shape;
}

// "name", or {"name": ..., "datatype": ..., "shape": [...]}.
PipelineSpec::Tensor read_tensor(JsonCursor& json) {
  PipelineSpec::Tensor tensor;
  if (json.peek() == '"') {
    tensor.name = json.string("a tensor's name");
  } else {
    json.object("a tensor", [&](std::string_view key) {
      if (key == "name")
        tensor.name = json.string("'name'");
      else if (key == "datatype")
        tensor.dtype = dtype_of(json.string("'datatype'"));
      else if (key == "shape")
        tensor.shape = read_shape(json);
      else
        fail_member("a tensor", key);
    });
  }
  SCONCE_CHECK(!tensor.name.empty(), kInvalidArgument, "a tensor has no name");
  return tensor;
}

// "tensor", or {"tensor": ..., "cast": "FP32"}.
PipelineSpec::Input read_input(JsonCursor& json, std::string_view name) {
  PipelineSpec::Input input;
  input.name = name;
  if (json.peek() == '"') {
    input.tensor = json.string("a tensor's name");
    return input;
  }
  json.object("an input", [&](std::string_view key) {
    if (key == "tensor")
      input.tensor = json.string("'tensor'");
    else if (key == "cast")
      input.cast = dtype_of(json.string("'cast'"));
    else
      fail_member("an input", key);
  });
  return input;
}

PipelineSpec::Step read_step(JsonCursor& json) {
  PipelineSpec::Step step;
  json.object("a step", [&](std::string_view key) {
    if (key == "model")
      step.model = json.string("'model'");
    else if (key == "version")
      step.version = json.peek() == '"' ? std::string(json.string("'version'"))
                                        : std::to_string(json.unsigned_integer("'version'"));
    else if (key == "inputs")
      json.object("'inputs'", [&](std::string_view name) { step.inputs.push_back(read_input(json, name)); });
    else if (key == "outputs")
      json.object("'outputs'", [&](std::string_view name) {
        step.outputs.push_back({std::string(name), std::string(json.string("a tensor's name"))});
      });
    else
      fail_member("a step", key);
  });
  return step;
}

void check(const PipelineSpec& spec) {
  SCONCE_CHECK(!spec.inputs.empty(), kInvalidArgument, "it has no inputs");
  SCONCE_CHECK(!spec.outputs.empty(), kInvalidArgument, "it has no outputs");
  SCONCE_CHECK(!spec.steps.empty(), kInvalidArgument, "it has no steps");
  SCONCE_CHECK(spec.steps.size() <= kMaxSteps, kInvalidArgument, "it has ", spec.steps.size(), " steps, at most ",
               kMaxSteps, " are possible");
  for (size_t i = 0; i < spec.steps.size(); ++i)
    SCONCE_CHECK(is_model_name(spec.steps[i].model), kInvalidArgument, "step ", i + 1, ": not a model's name: '",
                 excerpt(spec.steps[i].model), "'");
}

}  // namespace

PipelineSpec read_pipeline(std::string_view text, std::string origin) {
  PipelineSpec spec;
  spec.origin = std::move(origin);
  const ErrorContext context(spec.origin);
  JsonCursor json(text);
  json.object("the pipeline", [&](std::string_view key) {
    if (key == "inputs")
      json.array("'inputs'", [&](size_t) { spec.inputs.push_back(read_tensor(json)); });
    else if (key == "outputs")
      json.array("'outputs'", [&](size_t) { spec.outputs.push_back(read_tensor(json)); });
    else if (key == "steps")
      json.array("'steps'", [&](size_t) { spec.steps.push_back(read_step(json)); });
    else
      fail_member("the pipeline", key);
  });
  json.finish();
  check(spec);
  return spec;
}

PipelineSpec pipeline_of(const TritonConfig& config, std::string origin) {
  PipelineSpec spec;
  spec.origin = std::move(origin);
  const auto add = [&](const TritonTensor& from, std::vector<PipelineSpec::Tensor>& to) {
    PipelineSpec::Tensor tensor{from.name, {}, from.dims};
    if (!from.datatype.empty()) tensor.dtype = dtype_of(from.datatype);
    if (tensor.shape && config.max_batch_size > 0) tensor.shape->insert(tensor.shape->begin(), -1);
    to.push_back(std::move(tensor));
  };
  const ErrorContext context(spec.origin);
  for (const TritonTensor& input : config.inputs) add(input, spec.inputs);
  for (const TritonTensor& output : config.outputs) add(output, spec.outputs);
  for (const TritonStep& from : config.steps) {
    PipelineSpec::Step& step = spec.steps.emplace_back();
    step.model = from.model;
    if (from.version > 0) step.version = std::to_string(from.version);
    for (const auto& [name, tensor] : from.inputs) step.inputs.push_back({name, tensor, {}});
    for (const auto& [name, tensor] : from.outputs) step.outputs.push_back({name, tensor});
  }
  check(spec);
  return spec;
}

}  // namespace sconce::server::scheduling
