#include "package_format/wrapper/rows/row_proof.h"

#include <string>

#include "package_format/text/json_text.h"
#include "package_format/text/source_text.h"
#include "package_format/wrapper/rows/graph_rows.h"

namespace sconce {
namespace {

// The symbol of the first dimension that all inputs share, as the server's batch_symbol().
std::string_view batch_symbol(const ModelSpec& spec) {
  std::string_view symbol;
  for (const TensorSpec& input : spec.inputs) {
    if (!input.has_shape || input.dims.empty() || input.dims[0].is_static()) return {};
    if (input.dims[0].symbol.empty() || (!symbol.empty() && input.dims[0].symbol != symbol)) return {};
    symbol = input.dims[0].symbol;
  }
  return symbol;
}

// bfloat16 before float16: how coarsely values are rounded.
std::optional<DType> coarsest_buffer(std::string_view body) {
  std::optional<DType> coarsest;
  while (skip_to(body, "aoti_torch_empty_strided(")) {
    const std::string_view call = body.substr(0, body.find('\n'));
    if (find_text(call, "cached_torch_dtype_bfloat16") != std::string_view::npos) return DType::kBFloat16;
    if (find_text(call, "cached_torch_dtype_float16") != std::string_view::npos) coarsest = DType::kFloat16;
  }
  return coarsest;
}

// {"version": 1, "independent": true} or {"version": 1, "independent": false, "reason": ..., "operator": ..., "at":
// ...}
RowProof exported_proof(const ModelSpec& spec) {
  RowProof proof;
  const auto at = spec.metadata.find("sconce_rows");
  if (at == spec.metadata.end()) return proof;
  const SortedJson json = parse_json(at->second, "metadata sconce_rows");
  if (!json.is_object() || json.value("version", SortedJson()) != 1) {
    proof.reason = "the metadata's sconce_rows has a form that this version does not know";
    return proof;
  }
  const auto text = [&](const char* key) {
    const auto value = json.find(key);
    return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  if (json.value("independent", SortedJson()) == true) {
    proof.by = RowProof::By::kExport;
    return proof;
  }
  proof.reason = text("reason");
  for (const char* key : {"operator", "at"})
    if (const std::string value = text(key); !value.empty() && proof.reason.find(value) == std::string::npos)
      proof.reason += (proof.reason.empty() ? "" : ", ") + value;
  return proof;
}

}  // namespace

void prove_rows(rows::ParsedCode& code, ModelSpec& spec) {
  const WrapperSource& source = code.source();
  if (source.found) spec.coarsest_buffer = coarsest_buffer(source.body);
  spec.rows = exported_proof(spec);
  if (spec.rows.independent()) return;
  const std::string_view batch = batch_symbol(spec);
  const auto otherwise = [&](std::string reason) {
    if (spec.rows.reason.empty()) spec.rows.reason = std::move(reason);
  };
  if (!source.found) return otherwise("the package has neither a proof nor its generated source");
  if (batch.empty()) return otherwise("its inputs share no variable first dimension");
  if (spec.device_key != "cpu") return otherwise("the generated source is read of models for the CPU only");
  std::string reason = rows::why_not_independent(code, batch, spec);
  if (reason.empty()) {
    spec.rows = {.by = RowProof::By::kSource};
    return;
  }
  otherwise(std::move(reason));
}

}  // namespace sconce
