#include "server/grpc/documents.h"

#include <utility>

#include "sconce/check.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"

namespace sconce::server::rpc {
namespace {

using api::GrpcMethod;
using Json = OrderedJson;

std::string text_of(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found == message.end() ? std::string() : found->get<std::string>();
}

// {"trace_rate": {"value": ["1"]}} becomes {"trace_rate": "1"}; without a value, null, which restores the default.
Json trace_settings(const Json& settings) {
  Json body = Json::object();
  for (const auto& [key, setting] : settings.items()) {
    const auto value = setting.find("value");
    const bool several = key == "trace_level";
    if (value == setting.end() || value->empty()) {
      body[key] = nullptr;
    } else {
      SCONCE_CHECK(several || value->size() == 1, kInvalidArgument, "trace setting '", excerpt(key),
                   "' takes one value");
      body[key] = several ? *value : value->front();
    }
  }
  return body;
}

// {"log_info": {"bool_param": true}} becomes {"log_info": true}; likewise for parameters of a load.
Json bare_values(const Json& settings) {
  Json body = Json::object();
  for (const auto& [key, setting] : settings.items()) {
    SCONCE_CHECK(setting.size() == 1, kInvalidArgument, "'", excerpt(key), "' has no value");
    const auto value = setting.begin();
    // 64-bit numbers are strings in Protobuf's JSON.
    body[key] = value.key() == "int64_param" ? parse_document(value->get<std::string>()) : *value;
  }
  return body;
}

Json bytes_as_number(const Json& message, const char* key) {
  // 64-bit numbers are strings in Protobuf's JSON, and zeros are omitted.
  const auto found = message.find(key);
  return found == message.end() ? Json(0) : parse_document(found->get<std::string>());
}

}  // namespace

RouteRequest route_request(GrpcMethod method, std::string_view text) {
  const Json message = parse_document(text);
  RouteRequest request;
  Json body;
  switch (method) {
    case GrpcMethod::kServerLive:
    case GrpcMethod::kServerReady:
    case GrpcMethod::kServerMetadata:
    case GrpcMethod::kModelInfer:
    case GrpcMethod::kModelStreamInfer:
      break;
    case GrpcMethod::kModelReady:
    case GrpcMethod::kModelMetadata:
    case GrpcMethod::kModelConfig:
    case GrpcMethod::kModelStatistics:
      request.model = text_of(message, "name");
      request.version = text_of(message, "version");
      break;
    case GrpcMethod::kRepositoryIndex:
    case GrpcMethod::kRepositoryModelLoad:
    case GrpcMethod::kRepositoryModelUnload:
      SCONCE_CHECK(text_of(message, "repository_name").empty(), kUnsupported,
                   "'repository_name' is not supported: the server's repositories have no names");
      if (method == GrpcMethod::kRepositoryIndex) {
        body = {{"ready", message.value("ready", false)}};
      } else {
        request.model = text_of(message, "model_name");
        if (const auto given = message.find("parameters"); given != message.end())
          body = {{"parameters", bare_values(*given)}};
      }
      break;
    case GrpcMethod::kSystemSharedMemoryRegister:
      request.region = text_of(message, "name");
      body = {{"key", text_of(message, "key")},
              {"offset", bytes_as_number(message, "offset")},
              {"byte_size", bytes_as_number(message, "byte_size")}};
      break;
    case GrpcMethod::kCudaSharedMemoryRegister:
      request.region = text_of(message, "name");
      body = {{"raw_handle", {{"b64", text_of(message, "raw_handle")}}},
              {"device_id", bytes_as_number(message, "device_id")},
              {"byte_size", bytes_as_number(message, "byte_size")}};
      break;
    case GrpcMethod::kSystemSharedMemoryStatus:
    case GrpcMethod::kSystemSharedMemoryUnregister:
    case GrpcMethod::kCudaSharedMemoryStatus:
    case GrpcMethod::kCudaSharedMemoryUnregister:
      request.region = text_of(message, "name");
      break;
    case GrpcMethod::kTraceSetting:
    case GrpcMethod::kLogSettings:
      request.model = text_of(message, "model_name");
      if (const auto settings = message.find("settings"); settings != message.end() && !settings->empty()) {
        request.changes = true;
        body = method == GrpcMethod::kTraceSetting ? trace_settings(*settings) : bare_values(*settings);
      }
      break;
  }
  if (!body.is_null()) request.body = dump(body);
  return request;
}

std::string answer_message(GrpcMethod method, std::string_view document) {
  if (document.empty()) return "{}";
  switch (method) {
    case GrpcMethod::kModelConfig:
      return std::string("{\"config\":").append(document).append("}");
    case GrpcMethod::kRepositoryIndex:
      return std::string("{\"models\":").append(document).append("}");
    case GrpcMethod::kSystemSharedMemoryStatus:
    case GrpcMethod::kCudaSharedMemoryStatus: {
      Json regions = Json::object();
      for (const Json& region : parse_document(document)) regions[region.at("name").get<std::string>()] = region;
      return dump({{"regions", std::move(regions)}});
    }
    case GrpcMethod::kTraceSetting: {
      Json settings = Json::object();
      const Json known = parse_document(document);
      for (const auto& [key, value] : known.items())
        settings[key] = {{"value", value.is_array() ? value : Json::array({value})}};
      return dump({{"settings", std::move(settings)}});
    }
    case GrpcMethod::kLogSettings: {
      Json settings = Json::object();
      const Json known = parse_document(document);
      for (const auto& [key, value] : known.items()) {
        const char* const kind = value.is_boolean()  ? "bool_param"
                                 : value.is_string() ? "string_param"
                                                     : "uint32_param";
        settings[key][kind] = value;
      }
      return dump({{"settings", std::move(settings)}});
    }
    default:
      return std::string(document);
  }
}

}  // namespace sconce::server::rpc
