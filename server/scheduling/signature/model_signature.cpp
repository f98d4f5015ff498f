#include "server/scheduling/signature/model_signature.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"

namespace sconce::server::scheduling {
namespace {

// The JSON and wire form of a complex tensor has one additional dimension.
bool has_component_dimension(std::optional<DType> dtype) noexcept { return dtype && is_complex(*dtype); }

TensorInterface describe_tensor(const TensorSpec& spec) {
  TensorInterface tensor;
  tensor.dtype = spec.dtype;
  tensor.datatype = spec.dtype ? dtype_oip(*spec.dtype) : std::string_view("UNKNOWN");
  tensor.shape_known = spec.has_shape;
  tensor.shape = oip_shape(spec);
  return tensor;
}

}  // namespace

std::vector<int64_t> oip_shape(const TensorSpec& spec) {
  if (!spec.has_shape) return {-1};
  std::vector<int64_t> shape;
  for (const Dim& dim : spec.dims) shape.push_back(dim.is_static() ? dim.min : -1);
  if (has_component_dimension(spec.dtype)) shape.push_back(2);
  return shape;
}

std::optional<DType> dtype_from_oip(std::string_view datatype) noexcept {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"FP32", DType::kFloat32}, {"INT64", DType::kInt64},  {"UINT8", DType::kUInt8},   {"BOOL", DType::kBool},
      {"INT32", DType::kInt32},  {"FP64", DType::kFloat64}, {"FP16", DType::kFloat16},  {"BF16", DType::kBFloat16},
      {"INT8", DType::kInt8},    {"INT16", DType::kInt16},  {"UINT16", DType::kUInt16}, {"UINT32", DType::kUInt32},
      {"UINT64", DType::kUInt64}};
  for (const auto& [name, dtype] : kTypes) {
    if (name == datatype) return dtype;
  }
  return std::nullopt;
}

ModelSignature::ModelSignature(std::string model_name, int64_t model_version, ModelSpec model_spec)
    : name(std::move(model_name)),
      version(model_version),
      spec(std::move(model_spec)),
      input_names(TensorNames::of_inputs(spec)),
      output_names(TensorNames::of_outputs(spec)),
      input_leaf(spec.call_spec.input_leaf) {
  for (const TensorSpec& input : spec.inputs) inputs.push_back(describe_tensor(input));
  for (const TensorSpec& output : spec.outputs) outputs.push_back(describe_tensor(output));
  mutates_constants =
      std::any_of(spec.constants.begin(), spec.constants.end(), [](const ConstantSpec& c) { return c.mutated; });
  derive_batch();
}

std::string ModelSignature::batch_symbol() const {
  std::string symbol;
  for (const TensorSpec& input : spec.inputs) {
    if (!input.has_shape || input.dims.empty() || input.dims[0].is_static()) return {};
    if (input.dims[0].symbol.empty() || (!symbol.empty() && input.dims[0].symbol != symbol)) return {};
    symbol = input.dims[0].symbol;
  }
  return symbol;
}

int64_t ModelSignature::fewest_rows(int64_t most) const {
  const Dim& batch = spec.inputs[0].dims[0];
  int64_t rows = std::max<int64_t>(least_size(batch), 1);
  while (rows < most && !takes_size(batch, rows))
    ++rows;  // steps over sizes that are not multiples, if the batch is an expression
  return rows;
}

void ModelSignature::derive_batch() {
  max_batch_size = 0;
  const std::string symbol = batch_symbol();
  if (symbol.empty()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorInterface& output = outputs[i];
    if (output.shape_known && (output.shape.empty() || output.shape[0] != -1)) return;
    // The size is not that of the batch, but possibly a multiple of it.
    const std::vector<Dim>& dims = spec.outputs[i].dims;
    if (!dims.empty() && !dims[0].symbol.empty() && dims[0].symbol != symbol) return;
  }
  // Clients store it in 32 bits.
  max_batch_size = std::min<int64_t>(spec.inputs[0].dims[0].max, std::numeric_limits<int32_t>::max());
}

bool ModelSignature::outputs_described() const noexcept {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const TensorInterface& output) { return output.dtype && output.shape_known; });
}

void ModelSignature::observe_outputs(const OutputProbe& probe) {
  SCONCE_CHECK(probe.first.outputs.size() == outputs.size() && probe.second.outputs.size() == outputs.size(),
               kInvalidArgument, "two runs have ", probe.first.outputs.size(), " and ", probe.second.outputs.size(),
               " outputs, and the model has ", outputs.size());
  bool batched = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputProbe::Output &first = probe.first.outputs[i], &second = probe.second.outputs[i];
    if (first.none || second.none) continue;
    TensorInterface& output = outputs[i];
    if (!output.dtype) {
      output.dtype = first.dtype;
      output.datatype = dtype_oip(first.dtype);
    }
    if (!output.shape_known && first.sizes.size() == second.sizes.size()) {
      output.shape.clear();
      for (size_t d = 0; d < first.sizes.size(); ++d)
        output.shape.push_back(first.sizes[d] == second.sizes[d] ? first.sizes[d] : -1);
      if (has_component_dimension(output.dtype)) output.shape.push_back(2);
      output.shape_known = true;
    }
    batched = batched && !first.sizes.empty() && !second.sizes.empty() && first.sizes[0] == probe.first.batch &&
              second.sizes[0] == probe.second.batch;
  }
  batch_observed = batched && probe.first.batch != probe.second.batch;
  if (batched) {
    derive_batch();
  } else {
    max_batch_size = 0;
  }
}

}  // namespace sconce::server::scheduling
