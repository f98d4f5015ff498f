#include "package_format/description.h"

#include <string>
#include <utility>

#include "package_format/text/json_value.h"

namespace sconce {
namespace {

using Json = OrderedJson;

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(const std::optional<DType>& dtype) { return dtype ? Json(std::string(dtype_name(*dtype))) : Json(); }
Json or_null(const std::optional<Device>& device) { return device ? Json(to_string(*device)) : Json(); }

template <class Values>
Json list(const Values& values) {
  Json json = Json::array();
  for (const auto& value : values) json.push_back(value);
  return json;
}

Json json_of(const Dim& dim) {
  if (dim.is_static()) return dim.min;
  Json json = Json::object();
  json["symbol"] = or_null(dim.symbol);
  json["min"] = dim.min;
  json["max"] = dim.max == INT64_MAX ? Json() : Json(dim.max);
  return json;
}

Json json_of(const std::vector<TensorSpec>& tensors, bool inputs) {
  Json all = Json::array();
  for (const TensorSpec& spec : tensors) {
    Json json = Json::object();
    json["name"] = spec.name;
    json["dtype"] = or_null(spec.dtype);
    json["device"] = or_null(spec.device);
    json["shape"] = Json();
    json["strides"] = Json();
    if (spec.none) json["none"] = true;
    if (inputs) json["may_be_written"] = spec.may_be_written;
    if (spec.has_shape) {
      json["shape"] = Json::array();
      for (const Dim& dim : spec.dims) json["shape"].push_back(json_of(dim));
      if (spec.strides.size() == spec.dims.size()) {
        json["strides"] = Json::array();
        for (const auto& stride : spec.strides) json["strides"].push_back(stride ? Json(*stride) : Json());
      }
    }
    all.push_back(std::move(json));
  }
  return all;
}

Json json_of(const ConstantSpec& spec) {
  static constexpr const char* kTypes[] = {"unknown", "parameter", "buffer", "tensor_constant", "folded"};
  Json json = Json::object();
  json["name"] = spec.name;
  json["fqn"] = or_null(spec.fqn);
  json["dtype"] = or_null(spec.dtype);
  json["shape"] = list(spec.shape);
  json["strides"] = list(spec.strides);
  json["offset"] = spec.offset;
  json["bytes"] = spec.data_size;
  json["type"] = kTypes[static_cast<size_t>(spec.type)];
  json["folded"] = spec.folded;
  json["mutated"] = spec.mutated;
  json["assumed"] = spec.assumed;
  json["opaque"] = spec.opaque;
  json["device"] = or_null(spec.device);
  return json;
}

Json json_of(const SpecNode& node) {
  static constexpr const char* kKinds[] = {"leaf",         "none",         "tuple",      "list",  "dict",
                                           "ordered_dict", "default_dict", "namedtuple", "deque", "dataclass"};
  Json json = Json::object();
  json["kind"] = kKinds[static_cast<size_t>(node.kind)];
  if (!node.type.empty()) json["type"] = node.type;
  if (!node.keys.empty()) {
    json["keys"] = Json::array();
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const bool is_int = i < node.int_keys.size() && node.int_keys[i];
      // Integers of Python have any length: those that JSON numbers cannot represent here stay text.
      Json number = is_int ? Json::parse(node.keys[i], nullptr, false) : Json();
      json["keys"].push_back(number.is_number_integer() ? std::move(number) : Json(node.keys[i]));
    }
  }
  if (!node.children.empty()) {
    json["children"] = Json::array();
    for (const SpecNode& child : node.children) json["children"].push_back(json_of(child));
  }
  return json;
}

Json json_of(const CallSpec& call) {
  if (!call.known) return Json();
  Json json = Json::object();
  json["args"] = json_of(call.args);
  json["kwargs"] = json_of(call.kwargs);
  json["result"] = json_of(call.result);
  json["input_leaf"] = list(call.input_leaf);
  return json;
}

Json json_of(const ModelSpec& model) {
  static constexpr const char* kProofs[] = {"none", "export", "source"};
  static constexpr const char* kForms[] = {"none", "embedded", "appended", "blob", "files", "user_provided"};
  Json json = Json::object();
  json["name"] = model.name;
  json["device"] = model.device_key;
  json["platform"] = or_null(model.platform);
  json["machine"] = or_null(model.machine);
  json["cpu_isa"] = or_null(model.cpu_isa);
  json["march"] = or_null(model.march);
  json["compute_capability"] = or_null(model.compute_capability);
  json["threads"] = model.threads;
  json["metadata"] = Json::object();
  for (const auto& [key, value] : model.metadata) json["metadata"][key] = value;
  json["has_source"] = model.has_source;
  json["may_write_constants"] = model.may_write_constants;
  json["code"] = Json::object();
  json["code"]["member"] = model.so_member;
  json["code"]["bytes"] = model.so_bytes;
  json["weights"] = Json::object();
  json["weights"]["form"] = kForms[static_cast<size_t>(model.weights_form)];
  json["weights"]["bytes"] = model.weights_bytes;
  json["inputs"] = json_of(model.inputs, true);
  json["outputs"] = json_of(model.outputs, false);
  json["rows"] = Json::object();
  json["rows"]["independent"] = model.rows.independent();
  json["rows"]["proof"] = kProofs[static_cast<size_t>(model.rows.by)];
  json["rows"]["reason"] = or_null(model.rows.reason);
  json["why_not_smaller"] = or_null(model.why_not_smaller);
  json["call_spec"] = json_of(model.call_spec);
  json["constants"] = Json::array();
  for (const ConstantSpec& constant : model.constants) json["constants"].push_back(json_of(constant));
  json["imports"] = list(model.imports);
  json["proxy_targets"] = list(model.proxy_targets);
  return json;
}

// Names come from the package: bytes that are not UTF-8 become U+FFFD.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string json_text(const ModelSpec& model) { return text_of(json_of(model)); }

std::string json_text(const CallSpec& call) { return text_of(json_of(call)); }

std::string json_text(const Package& package) {
  Json json = Json::object();
  json["package"] = package.path().native();
  json["producer"] = or_null(package.producer());
  json["models"] = Json::array();
  for (const ModelSpec& model : package.models()) json["models"].push_back(json_of(model));
  return text_of(json);
}

}  // namespace sconce
