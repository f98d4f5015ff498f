#include "server/registry/documents.h"

#include <algorithm>

#include "package_format/description.h"
#include "sconce/version.h"
#include "server/registry/repositories/version_policy.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

using Json = OrderedJson;

// controls: inputs that clients do not send.
Json tensors_json(const scheduling::TensorNames& names, const std::vector<scheduling::TensorInterface>& tensors,
                  std::span<const scheduling::ControlInput> controls = {}) {
  Json list = Json::array();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const scheduling::TensorInterface& tensor = tensors[i];
    if (std::any_of(controls.begin(), controls.end(), [&](const scheduling::ControlInput& c) { return c.input == i; }))
      continue;
    Json json = {{"name", names.name(i)}, {"datatype", tensor.datatype}, {"shape", tensor.shape}};
    // Names the real dtype if values travel as a carrier type.
    if (tensor.dtype &&
        (is_complex(*tensor.dtype) || is_float8(*tensor.dtype) || *tensor.dtype == DType::kFloat4E2M1FNx2))
      json["parameters"] = {{"dtype", dtype_name(*tensor.dtype)}};
    list.push_back(std::move(json));
  }
  return list;
}

std::string config_type(std::string_view datatype) {
  return datatype == "UNKNOWN" ? "TYPE_INVALID" : "TYPE_" + std::string(datatype);
}

Json config_tensor(const std::string& name, const scheduling::TensorInterface& tensor, bool batched) {
  std::vector<int64_t> dims = tensor.shape;
  if (batched && !dims.empty()) dims.erase(dims.begin());
  return {{"name", name}, {"data_type", config_type(tensor.datatype)}, {"dims", dims}, {"is_shape_tensor", false}};
}

std::string_view tensorflow_type(std::string_view datatype) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"FP32", "DT_FLOAT"},  {"FP64", "DT_DOUBLE"},   {"FP16", "DT_HALF"},     {"BF16", "DT_BFLOAT16"},
      {"INT8", "DT_INT8"},   {"INT16", "DT_INT16"},   {"INT32", "DT_INT32"},   {"INT64", "DT_INT64"},
      {"UINT8", "DT_UINT8"}, {"UINT16", "DT_UINT16"}, {"UINT32", "DT_UINT32"}, {"UINT64", "DT_UINT64"},
      {"BOOL", "DT_BOOL"}};
  for (const auto& [name, type] : kTypes) {
    if (name == datatype) return type;
  }
  return "DT_INVALID";
}

Json duration(uint64_t count, uint64_t ns) { return {{"count", count}, {"ns", ns}}; }

Json queue_policy(const scheduling::BatchPolicy& policy) {
  return {
      {"timeout_action", policy.reject_late ? "REJECT" : "DELAY"},
      {"default_timeout_microseconds", std::chrono::duration_cast<std::chrono::microseconds>(policy.timeout).count()},
      {"allow_timeout_override", policy.timeout_override},
      {"max_queue_size", policy.queue}};
}

Json dynamic_batching(const scheduling::BatchPolicy& policy) {
  const auto delay = policy.delay.value_or(std::chrono::nanoseconds(0));
  return {{"preferred_batch_size", policy.preferred},
          {"max_queue_delay_microseconds", std::chrono::duration_cast<std::chrono::microseconds>(delay).count()},
          {"preserve_ordering", false},
          {"priority_levels", policy.priority_levels},
          {"default_priority_level", policy.priority_levels == 0 ? 0 : policy.default_priority},
          {"default_queue_policy", queue_policy(policy)},
          {"priority_queue_policy", Json::object()}};
}

Json sequence_batching(const scheduling::ModelSignature& model, const ModelConfig& settings) {
  Json controls = Json::array();
  for (const scheduling::ControlInput& control : model.controls) {
    const scheduling::TensorInterface& input = model.inputs[control.input];
    Json json = {{"kind", scheduling::control_kind_name(control.kind)},
                 {"int32_false_true", Json::array()},
                 {"fp32_false_true", Json::array()},
                 {"bool_false_true", Json::array()}};
    if (control.kind == scheduling::ControlInput::Kind::kId)
      json["data_type"] = config_type(input.datatype);
    else if (input.dtype == DType::kInt32)
      json["int32_false_true"] = {static_cast<int32_t>(control.off), static_cast<int32_t>(control.on)};
    else if (input.dtype == DType::kBool)
      json["bool_false_true"] = {control.off != 0, control.on != 0};
    else
      json["fp32_false_true"] = {control.off, control.on};
    controls.push_back({{"name", model.input_names.name(control.input)}, {"control", Json::array({std::move(json)})}});
  }
  using std::chrono::duration_cast, std::chrono::microseconds;
  return {{"oldest", {{"max_candidate_sequences", settings.sequences}, {"preferred_batch_size", Json::array()}}},
          {"max_sequence_idle_microseconds", duration_cast<microseconds>(settings.sequence_idle).count()},
          {"control_input", std::move(controls)},
          {"state", Json::array()}};
}

// The containers of the Python call, in the format of json_text(). Tensor names do not show whether RESULT[0] is in a
// list, a tuple or a dict.
Json structure(const CallSpec& call) {
  Json json = parse_document(json_text(call));
  json.erase("input_leaf");
  return json;
}

const char* platform_of(const scheduling::ModelSignature& model) { return model.pipeline ? "ensemble" : "torch_aoti"; }

Json step_json(const scheduling::PipelineSpec::Step& step) {
  Json inputs = Json::object(), outputs = Json::object(), casts = Json::object();
  for (const scheduling::PipelineSpec::Input& input : step.inputs) {
    inputs[input.name] = input.tensor;
    if (input.cast) casts[input.name] = config_type(dtype_oip(*input.cast));
  }
  for (const scheduling::PipelineSpec::Output& output : step.outputs) outputs[output.name] = output.tensor;
  const auto version = parse_number<int64_t>(step.version);
  Json json = {{"model_name", step.model},
               {"model_version", version.value_or(-1)},
               {"input_map", std::move(inputs)},
               {"output_map", std::move(outputs)},
               {"model_namespace", ""}};
  if (!step.version.empty() && !version) json["model_version_label"] = step.version;
  if (!casts.empty()) json["casts"] = std::move(casts);
  return json;
}

Json version_policy(const VersionPolicy& policy) {
  if (!policy.specific.empty()) return {{"specific", {{"versions", policy.specific}}}};
  if (policy.latest == VersionPolicy::kAll) return {{"all", Json::object()}};
  return {{"latest", {{"num_versions", policy.latest}}}};
}

}  // namespace

// Written by hand, because memory may be short.
std::string error_document(std::string_view message) {
  constexpr size_t kMost = 2048;
  const auto document = [](const std::string& shown) {
    std::string text = "{\"error\":";
    append_json_string(text, shown);
    return text += '}';
  };
  std::string shown = shortened(std::string(message.substr(0, kMost)), kMost);
  std::string text = document(shown);
  // Escaping may turn one byte into six.
  while (text.size() > kMost) {
    const size_t less = shown.size() / 4 * 3;
    text = document(shown = shortened(std::move(shown), less));
  }
  return text;
}

std::string server_document(bool shared_memory) {
  constexpr const char* kExtensions[] = {"classification",
                                         "sequence",
                                         "model_repository",
                                         "model_repository(unload_dependents)",
                                         "schedule_policy",
                                         "model_configuration",
                                         "binary_tensor_data",
                                         "parameters",
                                         "statistics",
                                         "trace",
                                         "logging",
                                         "generate"};
  Json extensions(kExtensions);
  if (shared_memory) {
    extensions.push_back("system_shared_memory");
    extensions.push_back("cuda_shared_memory");
  }
  return dump({{"name", "sconce"}, {"version", version()}, {"extensions", std::move(extensions)}});
}

std::string metadata_document(const scheduling::ModelSignature& model, std::span<const int64_t> versions) {
  Json json = {{"name", model.name}, {"versions", Json::array()}, {"platform", platform_of(model)}};
  for (const int64_t version : versions) json["versions"].push_back(std::to_string(version));
  json["inputs"] = tensors_json(model.input_names, model.inputs, model.controls);
  json["outputs"] = tensors_json(model.output_names, model.outputs);
  if (const CallSpec& call = model.spec.call_spec; call.known) json["call_spec"] = structure(call);
  return dump(json);
}

std::string config_document(const scheduling::ModelSignature& model, const scheduling::BatchPolicy& batching,
                            const ModelConfig& settings, const scheduling::PipelineSpec* pipeline) {
  const bool batched = model.max_batch_size > 0;
  Json inputs = Json::array(), outputs = Json::array();
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (model.is_control(i)) continue;
    Json input = config_tensor(model.input_names.name(i), model.inputs[i], batched);
    input["format"] = "FORMAT_NONE";
    input["allow_ragged_batch"] = false;
    input["optional"] = false;
    inputs.push_back(std::move(input));
  }
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    Json output = config_tensor(model.output_names.name(i), model.outputs[i], batched);
    output["label_filename"] = "";
    outputs.push_back(std::move(output));
  }
  Json gpus = Json::array();
  for (const std::string& device : settings.devices)
    if (const auto gpu = parse_number<int>(device.substr(std::min(device.size(), device.find(':') + 1))); gpu)
      gpus.push_back(*gpu);
  const bool cuda = model.spec.device_key == "cuda";
  Json config = {{"name", model.name},
                 {"platform", platform_of(model)},
                 {"backend", pipeline ? "" : "pytorch"},
                 {"runtime", ""},
                 {"version_policy", version_policy(parse_version_policy(settings.version_policy))},
                 {"max_batch_size", model.max_batch_size},
                 {"input", std::move(inputs)},
                 {"output", std::move(outputs)},
                 {"batch_input", Json::array()},
                 {"batch_output", Json::array()},
                 {"optimization",
                  {{"priority", "PRIORITY_DEFAULT"},
                   {"input_pinned_memory", {{"enable", true}}},
                   {"output_pinned_memory", {{"enable", true}}},
                   {"gather_kernel_buffer_threshold", 0},
                   {"eager_batching", false}}},
                 {"instance_group", Json::array()},
                 {"default_model_filename", pipeline ? "" : "model.pt2"},
                 {"cc_model_filenames", Json::object()},
                 {"metric_tags", Json::object()},
                 {"parameters", Json::object()},
                 {"model_warmup", Json::array()},
                 {"model_transaction_policy", {{"decoupled", !settings.loop.empty()}}},
                 {"response_cache", {{"enable", false}}}};
  for (const auto& [key, value] : model.metric_tags) config["metric_tags"][key] = value;
  for (const auto& [key, value] : model.parameters) config["parameters"][key] = {{"string_value", value}};
  if (pipeline) {
    Json steps = Json::array();
    for (const scheduling::PipelineSpec::Step& step : pipeline->steps) steps.push_back(step_json(step));
    config["ensemble_scheduling"] = {{"step", std::move(steps)}};
    return dump(config);
  }
  config["instance_group"].push_back({{"name", model.name},
                                      {"kind", cuda ? "KIND_GPU" : "KIND_CPU"},
                                      {"count", settings.replicas},
                                      {"gpus", std::move(gpus)},
                                      {"secondary_devices", Json::array()},
                                      {"profile", Json::array()},
                                      {"passive", false},
                                      {"host_policy", ""}});
  if (scheduling::has_sequences(model, settings)) {
    config["sequence_batching"] = sequence_batching(model, settings);
  } else if (batching.alone.empty()) {
    config["dynamic_batching"] = dynamic_batching(batching);
  } else {
    config["parameters"]["requests_run_alone"] = {{"string_value", batching.alone}};
  }
  config["parameters"]["rows_proof"] = {{"string_value", scheduling::name_of(batching.rows.by)}};
  if (!batching.rows.reason.empty() && batching.rows.reason != batching.alone)
    config["parameters"]["rows_reason"] = {{"string_value", batching.rows.reason}};
  return dump(config);
}

std::string signature_document(const scheduling::ModelSignature& model) {
  const auto tensors = [](const scheduling::TensorNames& names, const std::vector<scheduling::TensorInterface>& list) {
    Json json = Json::object();
    for (size_t i = 0; i < list.size(); ++i) {
      Json dims = Json::array();
      for (const int64_t size : list[i].shape) dims.push_back({{"size", std::to_string(size)}, {"name", ""}});
      json[names.name(i)] = {{"dtype", tensorflow_type(list[i].datatype)},
                             {"tensor_shape", {{"dim", std::move(dims)}, {"unknown_rank", !list[i].shape_known}}},
                             {"name", names.name(i)}};
    }
    return json;
  };
  return dump(
      {{"model_spec", {{"name", model.name}, {"signature_name", ""}, {"version", std::to_string(model.version)}}},
       {"metadata",
        {{"signature_def",
          {{"signature_def",
            {{"serving_default",
              {{"inputs", tensors(model.input_names, model.inputs)},
               {"outputs", tensors(model.output_names, model.outputs)},
               {"method_name", "tensorflow/serving/predict"}}}}}}}}}});
}

std::string statistics_document(std::span<const scheduling::ModelStatistics> models) {
  Json list = Json::array();
  for (const scheduling::ModelStatistics& m : models) {
    const scheduling::Totals& t = m.totals;
    Json batches = Json::array();
    for (const auto& [rows, batch] : t.batches) {
      batches.push_back({{"batch_size", rows},
                         {"compute_input", duration(batch.count, batch.input_ns)},
                         {"compute_infer", duration(batch.count, batch.compute_ns)},
                         {"compute_output", duration(batch.count, batch.output_ns)}});
    }
    list.push_back({{"name", m.name},
                    {"version", std::to_string(m.version)},
                    {"last_inference", t.last_inference_ms},
                    {"inference_count", t.inferences},
                    {"execution_count", t.executions},
                    {"inference_stats",
                     {{"success", duration(t.success, t.total_ns)},
                      {"fail", duration(t.failures, t.failure_ns)},
                      {"queue", duration(t.success, t.queue_ns)},
                      {"compute_input", duration(t.success, t.input_ns)},
                      {"compute_infer", duration(t.success, t.compute_ns)},
                      {"compute_output", duration(t.success, t.output_ns)},
                      {"cache_hit", duration(0, 0)},
                      {"cache_miss", duration(0, 0)}}},
                    {"response_stats", Json::object()},
                    {"batch_stats", std::move(batches)},
                    {"memory_usage", Json::array({{{"type", "CPU"}, {"id", 0}, {"byte_size", m.constant_bytes}}})}});
    if (m.sets.empty()) continue;
    Json sets = Json::object();
    for (const scheduling::ModelSets::Count& set : m.sets) {
      sets[set.name] = {{"inference_count", set.rows},
                        {"success", duration(set.success, set.total_ns)},
                        {"fail", {{"count", set.failures}}}};
    }
    list.back()["set_stats"] = std::move(sets);
  }
  return dump({{"model_stats", std::move(list)}});
}

std::string model_list_document(std::span<const std::string> names) { return dump({{"models", names}}); }

std::string status_document(const std::string& name, bool ready, std::span<const IndexEntry> versions) {
  Json list = Json::array();
  for (const IndexEntry& entry : versions) {
    const bool available = entry.state == "READY";
    const bool failed = !available && !entry.reason.empty() && entry.reason != "unloaded";
    list.push_back(
        {{"version", std::to_string(entry.version)},
         {"state", available                  ? "AVAILABLE"
                   : entry.state == "LOADING" ? "LOADING"
                                              : "END"},
         {"status", {{"error_code", failed ? "UNKNOWN" : "OK"}, {"error_message", failed ? entry.reason : ""}}}});
  }
  return dump({{"name", name}, {"ready", ready}, {"model_version_status", std::move(list)}});
}

std::string index_document(std::span<const IndexEntry> entries) {
  Json list = Json::array();
  for (const IndexEntry& entry : entries) {
    Json json = {{"name", entry.name}, {"version", std::to_string(entry.version)}, {"state", entry.state}};
    if (!entry.reason.empty()) json["reason"] = entry.reason;
    if (!entry.labels.empty()) json["labels"] = entry.labels;
    if (!entry.on_demand.empty()) json["on_demand"] = entry.on_demand;
    list.push_back(std::move(json));
  }
  return dump(list);
}

}  // namespace sconce::server::registry
