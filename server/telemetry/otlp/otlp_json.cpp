#include "server/telemetry/otlp/otlp_json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "sconce/check.h"
#include "sconce/version.h"
#include "server/http/client/url_text.h"
#include "server/support/trim.h"
#include "server/weights/store/peer_weights.h"
#include "src/support/excerpt.h"

namespace sconce::server::telemetry {
namespace {

// The version of the semantic conventions that defines the names.
constexpr std::string_view kSchema = "https://opentelemetry.io/schemas/1.27.0";

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

std::string request_of(std::string_view resources, std::string_view scopes, std::string_view members,
                       std::string_view resource, std::string_view items) {
  return fmt::format(
      R"({{"{}":[{{"resource":{},"{}":[{{"scope":{{"name":"sconce","version":"{}"}},"{}":[{}],"schemaUrl":"{}"}}],)"
      R"("schemaUrl":"{}"}}]}})",
      resources, resource, scopes, version(), members, items, kSchema, kSchema);
}

}  // namespace

OrderedJson otlp_text(std::string_view key, std::string_view value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

OrderedJson otlp_integer(std::string_view key, int64_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

OrderedJson otlp_flag(std::string_view key, bool value) { return {{"key", key}, {"value", {{"boolValue", value}}}}; }

std::string otlp_nanos(std::chrono::nanoseconds since_1970) { return std::to_string(since_1970.count()); }

std::string otlp_resource(const ServerConfig& config) {
  std::vector<std::pair<std::string, std::string>> texts = {{"service.name", "sconce"},
                                                            {"service.version", version()},
                                                            {"service.instance.id", weights::instance_name()},
                                                            {"telemetry.sdk.name", "sconce"},
                                                            {"telemetry.sdk.version", version()},
                                                            {"telemetry.sdk.language", "cpp"},
                                                            {"host.name", host_name()}};
  const auto set = [&](std::string_view key, std::string value) {
    const auto known = std::find_if(texts.begin(), texts.end(), [&](const auto& text) { return text.first == key; });
    if (known != texts.end()) {
      known->second = std::move(value);
    } else {
      texts.emplace_back(key, std::move(value));
    }
  };
  for (const std::string& assignment : config.otlp_resource) {
    const size_t equals = assignment.find('=');
    const std::string_view key = trim(std::string_view(assignment).substr(0, equals));
    SCONCE_CHECK(equals != std::string::npos && !key.empty(), kInvalidArgument,
                 "setting otlp_resource: expected NAME=VALUE, got '", excerpt(assignment), "'");
    set(key, http::percent_decoded(trim(std::string_view(assignment).substr(equals + 1))));
  }
  if (!config.otlp_service.empty()) set("service.name", config.otlp_service);
  OrderedJson attributes = OrderedJson::array();
  for (const auto& [key, value] : texts)
    if (!value.empty()) attributes.push_back(otlp_text(key, value));
  attributes.push_back(otlp_integer("process.pid", getpid()));
  return dump({{"attributes", std::move(attributes)}});
}

std::string spans_request(std::string_view resource, std::string_view items) {
  return request_of("resourceSpans", "scopeSpans", "spans", resource, items);
}

std::string metrics_request(std::string_view resource, std::string_view items) {
  return request_of("resourceMetrics", "scopeMetrics", "metrics", resource, items);
}

}  // namespace sconce::server::telemetry
