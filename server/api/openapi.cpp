#include "server/api/openapi.h"

#include "sconce/version.h"
#include "server/api/routes.h"
#include "server/support/json_document.h"

namespace sconce::server::api {
namespace {

using Json = OrderedJson;

constexpr std::string_view kSchemas = R"({
"Any": {},
"Object": {"type": "object"},
"Array": {"type": "array"},
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
"Live": {"type": "object", "required": ["live"], "properties": {"live": {"type": "boolean"}}},
"Ready": {"type": "object", "required": ["ready"],
 "properties": {"ready": {"type": "boolean"}, "reason": {"type": "string"}}},
"ModelReady": {"type": "object", "required": ["name", "ready"],
  "properties": {"name": {"type": "string"}, "ready": {"type": "boolean"}, "on_demand": {"type": "string"}}},
"ServerMetadata": {"type": "object", "required": ["name", "version", "extensions"],
  "properties": {"name": {"type": "string"}, "version": {"type": "string"},
    "extensions": {"type": "array", "items": {"type": "string"}}}},
"Tensor": {"type": "object", "required": ["name", "datatype", "shape"],
  "properties": {"name": {"type": "string"}, "datatype": {"type": "string"},
    "shape": {"type": "array", "items": {"type": "integer"}}, "parameters": {"type": "object"}}},
"ModelMetadata": {"type": "object", "required": ["name", "versions", "platform", "inputs", "outputs"],
  "properties": {"name": {"type": "string"}, "versions": {"type": "array", "items": {"type": "string"}},
    "platform": {"type": "string"}, "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
    "call_spec": {"type": "object", "required": ["args", "kwargs", "result"], "additionalProperties": {"type": "object"}}}},
"Duration": {"type": "object", "required": ["count", "ns"],
  "properties": {"count": {"type": "integer", "minimum": 0}, "ns": {"type": "integer", "minimum": 0}}},
"Statistics": {"type": "object", "required": ["model_stats"], "properties": {"model_stats": {"type": "array",
  "items": {"type": "object", "required": ["name", "version", "inference_count", "execution_count", "inference_stats"],
    "properties": {"name": {"type": "string"}, "version": {"type": "string"}, "inference_count": {"type": "integer"},
      "execution_count": {"type": "integer"}, "last_inference": {"type": "integer"},
      "inference_stats": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Duration"}}}}}}},
"IndexRequest": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
"Index": {"type": "array", "items": {"type": "object", "required": ["name"],
  "properties": {"name": {"type": "string"}, "version": {"type": "string"}, "state": {"type": "string"},
    "reason": {"type": "string"}, "on_demand": {"type": "string"}}}},
"Parameters": {"type": "object", "properties": {"parameters": {"type": "object"}}},
"InferInput": {"type": "object", "required": ["name", "shape", "datatype"],
  "properties": {"name": {"type": "string"}, "datatype": {"type": "string"},
    "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}}, "data": {"type": "array"},
    "parameters": {"type": "object", "properties": {"binary_data_size": {"type": "integer", "minimum": 0},
      "shared_memory_region": {"type": "string"}, "shared_memory_byte_size": {"type": "integer", "minimum": 0},
      "shared_memory_offset": {"type": "integer", "minimum": 0}}}}},
"InferOutput": {"type": "object", "required": ["name"],
  "properties": {"name": {"type": "string"}, "parameters": {"type": "object", "properties": {
    "binary_data": {"type": "boolean"}, "classification": {"type": "integer", "minimum": 0},
    "shared_memory_region": {"type": "string"}, "shared_memory_byte_size": {"type": "integer", "minimum": 0},
    "shared_memory_offset": {"type": "integer", "minimum": 0}}}}},
"InferRequest": {"type": "object", "required": ["inputs"],
  "properties": {"id": {"type": "string"}, "inputs": {"type": "array",
      "items": {"$ref": "#/components/schemas/InferInput"}},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/InferOutput"}},
    "parameters": {"type": "object", "properties": {"priority": {"type": "integer", "minimum": 0},
      "timeout": {"type": "integer", "minimum": 0}, "binary_data_output": {"type": "boolean"}}}}},
"InferAnswer": {"type": "object", "required": ["model_name", "model_version", "outputs"],
  "properties": {"id": {"type": "string"}, "model_name": {"type": "string"}, "model_version": {"type": "string"},
    "parameters": {"type": "object"}, "outputs": {"type": "array",
      "items": {"$ref": "#/components/schemas/Tensor"}}}},
"Call": {"type": "object", "properties": {"args": {"type": "array"}, "kwargs": {"type": "object"}},
  "additionalProperties": false},
"Predict": {"type": "object", "properties": {"instances": {"type": "array"}, "inputs": {},
  "signature_name": {"type": "string"}, "parameters": {"type": "object"}}},
"Predictions": {"type": "object", "properties": {"predictions": {}, "outputs": {}}},
"ModelList": {"type": "object", "required": ["models"],
  "properties": {"models": {"type": "array", "items": {"type": "string"}}}},
"ModelStatus": {"type": "object", "required": ["name", "ready", "model_version_status"],
  "properties": {"name": {"type": "string"}, "ready": {"type": "boolean"}, "model_version_status": {"type": "array"}}},
"TraceSettings": {"type": "object", "properties": {"trace_level": {"type": "array", "items": {"type": "string"}},
  "trace_rate": {"type": "string"}, "trace_count": {"type": "string"}, "log_frequency": {"type": "string"},
  "trace_file": {"type": "string"}, "trace_mode": {"type": "string"}}},
"LogSettings": {"type": "object", "properties": {"log_file": {"type": "string"}, "log_info": {"type": "boolean"},
  "log_warning": {"type": "boolean"}, "log_error": {"type": "boolean"},
  "log_verbose_level": {"type": "integer", "minimum": 0}, "log_format": {"type": "string"}}},
"Region": {"type": "object", "required": ["key", "byte_size"], "properties": {"key": {"type": "string"},
  "offset": {"type": "integer", "minimum": 0}, "byte_size": {"type": "integer", "minimum": 1}}},
"Regions": {"type": "array", "items": {"type": "object", "required": ["name", "key", "offset", "byte_size"]}},
"CudaRegion": {"type": "object", "required": ["raw_handle", "device_id", "byte_size"], "properties": {
  "raw_handle": {"type": "object", "required": ["b64"], "properties": {"b64": {"type": "string"}}},
  "device_id": {"type": "integer", "minimum": 0}, "byte_size": {"type": "integer", "minimum": 1}}},
"Shares": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1e9}},
"CudaRegions": {"type": "array", "items": {"type": "object", "required": ["name", "device_id", "byte_size"]}}
})";

Json schema(std::string_view name) { return {{"$ref", std::string("#/components/schemas/").append(name)}}; }

Json path_parameter(std::string_view name) {
  Json type = {{"type", "string"}};
  if (name == "model") type["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$";
  if (name == "version") type["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$";
  if (name == "number") type["pattern"] = "^[0-9]{1,18}$";
  if (name == "set") type["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$";
  if (name == "file") type["pattern"] = "^[a-z0-9_-]{1,64}[.][a-z]{2,4}$";
  if (name == "region") type["pattern"] = "^[A-Za-z0-9_-]{1,64}$";
  return {{"name", name}, {"in", "path"}, {"required", true}, {"schema", std::move(type)}};
}

Json answer_content(const Description& text) {
  if (text.answer == "text") return {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  if (text.answer == "style") return {{"text/css", {{"schema", {{"type", "string"}}}}}};
  if (text.answer == "page") return {{"text/html", {{"schema", {{"type", "string"}}}}}};
  if (text.answer == "weights")
    return {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}};
  if (text.answer == "events") return {{"text/event-stream", {{"schema", {{"type", "string"}}}}}};
  Json content = {{"application/json", {{"schema", schema(text.answer)}}}};
  if (text.remarks & Description::kAnswersBinary) {
    content["application/octet-stream"] = {{"schema", {{"type", "string"}, {"format", "binary"}}}};
  }
  return content;
}

Json operation(const Description& text) {
  const Json error = {{"description", "Refused or failed, and why"},
                      {"content", {{"application/json", {{"schema", schema("Error")}}}}}};
  Json done = {{"description", "Done"}};
  if (!text.answer.empty()) done["content"] = answer_content(text);
  Json json = {{"tags", Json::array({text.tag})},
               {"summary", text.summary},
               {"responses", {{"200", std::move(done)}, {"4XX", error}, {"5XX", error}}}};
  // Their 503 has the same form as their 200.
  if (text.answer == "Ready" || text.answer == "ModelReady" || text.answer == "ModelStatus") {
    json["responses"]["503"] = {{"description", "Not ready"}, {"content", answer_content(text)}};
  }
  if (text.remarks & Description::kAnswersLater) {
    json["responses"]["202"] = {{"description", "Staging began"}, {"content", answer_content(text)}};
  }
  if (!text.request.empty()) {
    json["requestBody"] = {{"required", (text.remarks & Description::kBodyOptional) == 0},
                           {"content", {{"application/json", {{"schema", schema(text.request)}}}}}};
  }
  return json;
}

void add_path(Json& all, std::string_view text, const Route& route, bool deprecated) {
  const std::string pattern(text);
  Json& path = all[pattern];
  if (path.is_null()) {
    path = Json::object();
    Json parameters = Json::array();
    for (const std::string_view name : {"model", "version", "set", "region", "number", "file"}) {
      if (pattern.find(std::string("{").append(name).append("}")) != std::string::npos)
        parameters.push_back(path_parameter(name));
    }
    if (!parameters.empty()) path["parameters"] = std::move(parameters);
  }
  const char* const method = route.method == http::Method::kGet      ? "get"
                             : route.method == http::Method::kPost   ? "post"
                             : route.method == http::Method::kDelete ? "delete"
                                                                     : "put";
  path[method] = operation(route.description);
  if (deprecated) path[method]["deprecated"] = true;
}

Json paths(http::Listeners listener) {
  Json all = Json::object();
  for (const Route& route : kRoutes) {
    if ((route.listeners & listener) == 0) continue;
    for (const std::string_view& path : route.paths) add_path(all, path, route, route.paths.is_deprecated(&path));
  }
  return all;
}

}  // namespace

std::string openapi_document(http::Listeners listener) {
  Json json = {{"openapi", "3.0.3"},
               {"info",
                {{"title", "Sconce"},
                 {"version", version()},
                 {"license", {{"name", "Apache-2.0"}}},
                 {"description",
                  "Open Inference Protocol v2 with Triton's extensions, KServe v1, TensorFlow Serving's predict, and "
                  "calls shaped like Python's."}}},
               {"paths", paths(listener)},
               {"components", {{"schemas", parse_document(kSchemas)}}}};
  return dump(json);
}

}  // namespace sconce::server::api
