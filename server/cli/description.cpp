#include "server/cli/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "package_format/description.h"
#include "sconce/model.h"
#include "sconce/runnable.h"
#include "server/scheduling/batching/row_sharing.h"
#include "server/scheduling/signature/constant_type.h"
#include "server/scheduling/signature/names.h"
#include "server/support/enum_name.h"
#include "server/support/log.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

using Json = nlohmann::ordered_json;

// Maximum length of lists that describe_text prints in full.
constexpr size_t kShortList = 24;

// Names come from the package: a terminal must not interpret control characters in them: ASCII's and, in UTF-8, U+0080
// to U+009F.
std::string escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool second = i > 0 && text[i - 1] == '\xc2' && c >= 0x80 && c < 0xa0;
    if (c < 0x20 || c == 0x7f || second)
      out += fmt::format("\\x{:02x}", c);
    else
      out += text[i];
  }
  return out;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string describe_dim(const Dim& dim) {
  if (dim.is_static()) return std::to_string(dim.min);
  const std::string range =
      dim.max == INT64_MAX ? fmt::format("{}..", dim.min) : fmt::format("{}..{}", dim.min, dim.max);
  return dim.symbol.empty() ? range : fmt::format("{} ({})", dim.symbol, range);
}

std::string describe_list(const std::vector<std::optional<int64_t>>& values) {
  std::vector<std::string> words;
  for (const auto& value : values) words.push_back(value ? std::to_string(*value) : "?");
  return fmt::format("[{}]", fmt::join(words, ", "));
}

// A pytree as Python would write it, with tensors by name.
std::string describe_tree(const SpecNode& node, std::span<const std::string> names, size_t& leaf) {
  if (node.kind == SpecNode::Kind::kLeaf) {
    const size_t i = leaf++;
    return i < names.size() ? names[i] : "*";
  }
  if (node.kind == SpecNode::Kind::kNone) return "None";
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.children.size(); ++i) {
    std::string part = describe_tree(node.children[i], names, leaf);
    if (i < node.keys.size()) {
      const bool quoted = node.kind == SpecNode::Kind::kDict || node.kind == SpecNode::Kind::kOrderedDict ||
                          node.kind == SpecNode::Kind::kDefaultDict;
      const bool is_int = i < node.int_keys.size() && node.int_keys[i];
      const std::string key = quoted && !is_int ? fmt::format("'{}'", node.keys[i]) : node.keys[i];
      part = key + (quoted ? ": " : "=") + part;
    }
    parts.push_back(std::move(part));
  }
  const std::string joined = fmt::format("{}", fmt::join(parts, ", "));
  switch (node.kind) {
    case SpecNode::Kind::kTuple:
      return fmt::format("({}{})", joined, parts.size() == 1 ? "," : "");
    case SpecNode::Kind::kList:
      return fmt::format("[{}]", joined);
    case SpecNode::Kind::kDict:
    case SpecNode::Kind::kOrderedDict:
    case SpecNode::Kind::kDefaultDict:
      return fmt::format("{{{}}}", joined);
    default:
      return fmt::format("{}({})", node.type.substr(node.type.rfind('.') + 1), joined);
  }
}

void add_line(std::string& out, std::string_view label, std::string_view text) {
  out += bold(fmt::format("{:<14}", label));
  out += escaped(text);
  out += '\n';
}

void add_tensors(std::string& out, std::string_view label, const std::vector<TensorSpec>& tensors,
                 const scheduling::TensorNames& names) {
  add_line(out, label, std::to_string(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i)
    out += fmt::format("  {}  {}  {}\n", escaped(names.name(i)), faint(escaped(tensors[i].name)),
                       escaped(describe(tensors[i])));
}

void add_constants(std::string& out, const ModelSpec& model, bool all) {
  add_line(out, "constants", describe_constants(model));
  for (size_t i = 0; i < model.constants.size(); ++i) {
    if (!all && i == kShortList) {
      out += faint(fmt::format("  ... and {} more (--all)\n", model.constants.size() - i));
      break;
    }
    const ConstantSpec& c = model.constants[i];
    out += fmt::format("  {}  {} {}  {}  {}\n", escaped(c.fqn.empty() ? c.name : c.fqn),
                       c.dtype ? dtype_name(*c.dtype) : std::string_view("dtype unknown"),
                       to_string(std::span<const int64_t>(c.shape)), format_bytes(c.data_size), faint(marks_of(c)));
  }
}

void add_operators(std::string& out, const ModelSpec& model) {
  const std::vector<std::string> operators = operators_of(model);
  const std::vector<std::string> implemented = implemented_operators();
  add_line(out, "operators", std::to_string(operators.size() + model.proxy_targets.size()));
  for (const std::string& name : operators) {
    const bool known = std::binary_search(implemented.begin(), implemented.end(), name);
    out += known ? fmt::format("  {}\n", name) : fmt::format("  {}  {}\n", escaped(name), red("not implemented"));
  }
  for (const std::string& name : model.proxy_targets)
    out += fmt::format("  {}  {}\n", escaped(name), faint("through the proxy executor"));
}

void add_model(std::string& out, const ModelSpec& model, bool all) {
  out += '\n';
  add_line(out, "model", model.name);
  add_line(out, "device",
           model.device_key + (model.compute_capability.empty() ? "" : ", sm_" + model.compute_capability));
  add_line(out, "compiled for",
           fmt::format("{} {}, {}{}", or_unknown(model.platform), or_unknown(model.machine),
                       model.cpu_isa.empty() ? "instruction set unknown" : model.cpu_isa,
                       model.march.empty() ? "" : ", -march=" + model.march));
  add_line(out, "threads", model.threads == 0 ? "one, or unknown" : std::to_string(model.threads));
  add_line(out, "code", fmt::format("{}, {}", format_bytes(model.so_bytes), model.so_member));
  add_line(out, "weights", fmt::format("{}, {}", format_bytes(model.weights_bytes), form_name(model.weights_form)));
  add_line(out, "signature",
           model.has_source ? "from the generated source" : "the package has no source: shapes are unknown");
  add_line(out, "call", describe_call(model));
  add_line(out, "rows", describe_rows(model));
  if (const std::string sizes = describe_least_sizes(model); !sizes.empty()) add_line(out, "sizes", sizes);
  add_tensors(out, "inputs", model.inputs, scheduling::TensorNames::of_inputs(model));
  add_tensors(out, "outputs", model.outputs, scheduling::TensorNames::of_outputs(model));
  add_constants(out, model, all);
  add_operators(out, model);
}

// Inputs or outputs with their protocol names; the names in the generated code come second.
void name_tensors(Json& tensors, const scheduling::TensorNames& names) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    Json named = {{"name", names.name(i)}, {"code_name", tensors[i]["name"]}};
    tensors[i].erase("name");
    named.update(tensors[i]);
    tensors[i] = std::move(named);
  }
}

Json to_json(const ModelSpec& model) {
  Json json = Json::parse(json_text(model));
  name_tensors(json["inputs"], scheduling::TensorNames::of_inputs(model));
  name_tensors(json["outputs"], scheduling::TensorNames::of_outputs(model));
  json["weights"]["form"] = form_name(model.weights_form);
  const std::vector<std::string> operators = operators_of(model);
  const std::vector<std::string> implemented = implemented_operators();
  Json missing = Json::array();
  for (const std::string& name : operators)
    if (!std::binary_search(implemented.begin(), implemented.end(), name)) missing.push_back(name);
  json.erase("imports");
  json.erase("proxy_targets");
  json["operators"] = operators;
  json["operators_missing"] = missing;
  json["proxy_targets"] = model.proxy_targets;
  return json;
}

}  // namespace

std::string describe_rows(const ModelSpec& model) {
  const scheduling::RowSharing sharing = scheduling::row_sharing(model.rows, {}, Batching::kAuto);
  if (sharing.shared) return std::string("requests may share runs: ") + scheduling::text_of(sharing.by);
  return "it is not proved that requests may share runs: " + printable(model.rows.reason);
}

std::string describe_least_sizes(const ModelSpec& model) {
  if (model.why_not_smaller.empty()) return {};
  std::set<std::string> symbols;
  for (const TensorSpec& input : model.inputs)
    for (const Dim& dim : input.dims)
      if (dim.smallest == 2) symbols.insert(dim.symbol);
  return fmt::format("{}: 2 or more, because of {}", fmt::join(symbols, ", "), printable(model.why_not_smaller));
}

std::string describe_call(const ModelSpec& model) {
  if (!model.call_spec.known) return "unknown";
  std::vector<std::string> names(model.call_spec.args.leaves() + model.call_spec.kwargs.leaves(), "*");
  for (size_t i = 0; i < model.call_spec.input_leaf.size() && i < model.inputs.size(); ++i)
    if (model.call_spec.input_leaf[i] < names.size()) names[model.call_spec.input_leaf[i]] = model.inputs[i].name;
  size_t leaf = 0;
  std::vector<std::string> parts;
  for (const SpecNode& child : model.call_spec.args.children) parts.push_back(describe_tree(child, names, leaf));
  for (size_t i = 0; i < model.call_spec.kwargs.children.size(); ++i)
    parts.push_back(model.call_spec.kwargs.keys[i] + "=" +
                    describe_tree(model.call_spec.kwargs.children[i], names, leaf));
  std::vector<std::string> results;
  for (const TensorSpec& output : model.outputs) results.push_back(output.name);
  leaf = 0;
  return fmt::format("({}) -> {}", fmt::join(parts, ", "), describe_tree(model.call_spec.result, results, leaf));
}

std::string describe_constants(const ModelSpec& model) {
  if (model.has_source) return std::to_string(model.constants.size());
  return model.may_write_constants ? "only the loaded model lists them; it may write those that are no parameters"
                                   : "only the loaded model lists them; runs write none of them";
}

std::string marks_of(const ConstantSpec& constant) {
  std::string marks = scheduling::constant_type_name(constant.type);
  if (constant.folded) marks += ", computed at load";
  if (constant.mutated) marks += constant.assumed ? ", may be written by the model" : ", written by the model";
  if (constant.opaque) marks += ", packed";
  return marks;
}

std::string describe(const TensorSpec& spec) {
  if (spec.none) return "None";
  std::string text(spec.dtype ? dtype_name(*spec.dtype) : std::string_view("dtype unknown"));
  if (!spec.has_shape) return text + ", shape unknown";
  std::vector<std::string> dims;
  for (const Dim& dim : spec.dims) dims.push_back(describe_dim(dim));
  text += fmt::format(" [{}]", fmt::join(dims, ", "));
  if (!spec.strides.empty()) text += fmt::format(" strides {}", describe_list(spec.strides));
  if (spec.device) text += fmt::format(" {}", sconce::to_string(*spec.device));
  return text;
}

const char* form_name(WeightsForm form) {
  return name_of(form,
                 {"none", "embedded in the code", "appended to the code", "one blob", "files", "provided by the user"});
}

std::vector<std::string> operators_of(const ModelSpec& model) {
  static constexpr std::string_view kPrefixes[] = {"aoti_torch_cpu_", "aoti_torch_cuda_"};
  std::set<std::string> found;
  for (const std::string& name : model.imports)
    for (const std::string_view prefix : kPrefixes)
      if (name.starts_with(prefix)) found.insert(name);
  return {found.begin(), found.end()};
}

std::string describe_text(const Package& package, std::span<const ModelSpec* const> models, bool all) {
  std::string out;
  add_line(out, "package", package.path().string());
  add_line(out, "producer", or_unknown(package.producer()));
  for (const ModelSpec* model : models) add_model(out, *model, all);
  return out;
}

nlohmann::ordered_json describe_json(const Package& package, std::span<const ModelSpec* const> models) {
  Json json = {{"package", package.path().string()}, {"producer", package.producer()}, {"models", Json::array()}};
  for (const ModelSpec* model : models) json["models"].push_back(to_json(*model));
  return json;
}

}  // namespace sconce::server::cli
