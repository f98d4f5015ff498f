#include "python/native/descriptions.h"

#include <chrono>
#include <string>

#include "python/native/call_plan.h"
#include "python/native/errors.h"

namespace sconce::python {
namespace {

// Text of a package may be any bytes.
nb::object text(std::string_view value) {
  return owned(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "backslashreplace"));
}

nb::object text_or_none(std::string_view value) { return value.empty() ? nb::none() : text(value); }

nb::object name_of(std::optional<DType> dtype) { return dtype ? text(dtype_name(*dtype)) : nb::none(); }

nb::object name_of(std::optional<Device> device) { return device ? text(to_string(*device)) : nb::none(); }

template <class T>
nb::object list_of(const std::vector<T>& values) {
  nb::list list;
  for (const T& value : values) list.append(value);
  return list;
}

nb::object texts(const std::vector<std::string>& values) {
  nb::list list;
  for (const std::string& value : values) list.append(text(value));
  return list;
}

nb::object dims_of(const TensorSpec& spec) {
  if (!spec.has_shape) return nb::none();
  nb::list dims;
  for (const Dim& dim : spec.dims)
    dims.append(nb::make_tuple(dim.min, dim.max == INT64_MAX ? nb::none() : nb::object(nb::int_(dim.max)),
                               text_or_none(dim.symbol)));
  return dims;
}

nb::dict describe(const TensorSpec& spec, const std::string& path, bool input) {
  nb::dict dict;
  dict["path"] = text(path);
  dict["name"] = text(spec.name);
  dict["dtype"] = name_of(spec.dtype);
  dict["device"] = name_of(spec.device);
  dict["dims"] = dims_of(spec);
  nb::list strides;
  for (const auto& stride : spec.strides) strides.append(stride ? nb::object(nb::int_(*stride)) : nb::none());
  dict["strides"] = strides;
  dict["none"] = spec.none;
  dict["may_be_written"] = input && spec.may_be_written;
  return dict;
}

nb::dict describe(const SpecNode& node) {
  static constexpr const char* kKinds[] = {"leaf",        "none",        "tuple",      "list",  "dict",
                                           "OrderedDict", "defaultdict", "namedtuple", "deque", "dataclass"};
  nb::dict dict;
  dict["kind"] = kKinds[static_cast<int>(node.kind)];
  dict["type"] = text(node.type);
  nb::list keys, children;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const bool is_int = i < node.int_keys.size() && node.int_keys[i];
    keys.append(is_int ? owned(PyLong_FromString(node.keys[i].c_str(), nullptr, 10)) : text(node.keys[i]));
  }
  for (const SpecNode& child : node.children) children.append(describe(child));
  dict["keys"] = keys;
  dict["children"] = children;
  return dict;
}

const char* word_for(ConstantType type) noexcept {
  constexpr const char* kWords[] = {"unknown", "parameter", "buffer", "tensor_constant", "folded"};
  return kWords[static_cast<int>(type)];
}

const char* word_for(WeightsForm form) noexcept {
  constexpr const char* kWords[] = {"none", "embedded", "appended", "blob", "files", "user_provided"};
  return kWords[static_cast<int>(form)];
}

const char* word_for(WeightState state) noexcept {
  constexpr const char* kWords[] = {"active", "staged", "previous"};
  return kWords[static_cast<int>(state)];
}

}  // namespace

nb::list describe(const std::vector<ConstantSpec>& constants) {
  nb::list list;
  for (const ConstantSpec& constant : constants) {
    nb::dict dict;
    dict["name"] = text(constant.fqn.empty() ? constant.name : constant.fqn);
    dict["code_name"] = text(constant.name);
    dict["dtype"] = name_of(constant.dtype);
    dict["shape"] = nb::tuple(list_of(constant.shape));
    dict["strides"] = nb::tuple(list_of(constant.strides));
    dict["nbytes"] = constant.data_size;
    dict["type"] = word_for(constant.type);
    dict["folded"] = constant.folded;
    dict["mutated"] = constant.mutated;
    dict["assumed"] = constant.assumed;
    dict["opaque"] = constant.opaque;
    list.append(dict);
  }
  return list;
}

nb::dict describe(const ModelSpec& spec) {
  const CallPlan plan(spec, false);
  nb::dict dict;
  dict["name"] = text(spec.name);
  dict["device"] = text(spec.device_key);
  dict["platform"] = text_or_none(spec.platform);
  dict["machine"] = text_or_none(spec.machine);
  dict["cpu_isa"] = text_or_none(spec.cpu_isa);
  dict["march"] = text_or_none(spec.march);
  dict["compute_capability"] = text_or_none(spec.compute_capability);
  dict["threads"] = spec.threads;
  nb::dict metadata;
  for (const auto& [key, value] : spec.metadata) metadata[text(key)] = text(value);
  dict["metadata"] = metadata;
  dict["code_bytes"] = spec.so_bytes;
  dict["weights_form"] = word_for(spec.weights_form);
  dict["weights_bytes"] = spec.weights_bytes;
  nb::list inputs, outputs;
  for (size_t i = 0; i < spec.inputs.size(); ++i) inputs.append(describe(spec.inputs[i], plan.rule(i).path, true));
  for (size_t i = 0; i < spec.outputs.size(); ++i)
    outputs.append(describe(spec.outputs[i], plan.output_path(i), false));
  dict["inputs"] = inputs;
  dict["outputs"] = outputs;
  dict["call"] = nb::none();
  if (spec.call_spec.known) {
    nb::dict call;
    call["args"] = describe(spec.call_spec.args);
    call["kwargs"] = describe(spec.call_spec.kwargs);
    call["result"] = describe(spec.call_spec.result);
    dict["call"] = call;
  }
  dict["constants"] = describe(spec.constants);
  dict["operators"] = texts(spec.proxy_targets);
  return dict;
}

nb::list describe(const std::vector<WeightSetInfo>& sets) {
  nb::list list;
  for (const WeightSetInfo& set : sets) {
    nb::dict dict;
    dict["state"] = word_for(set.state);
    dict["weight_version"] = set.weight_version;
    dict["label"] = text(set.label);
    dict["nbytes"] = set.bytes;
    dict["own_nbytes"] = set.own_bytes;
    dict["since"] = std::chrono::duration<double>(set.since.time_since_epoch()).count();
    list.append(dict);
  }
  return list;
}

}  // namespace sconce::python
