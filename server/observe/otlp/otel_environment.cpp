#include "server/observe/otlp/otel_environment.h"

#include <string>
#include <string_view>

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::server {
namespace {

struct OtelVariable {
  const char* name;
  std::string_view key, unit;  // unit: what numbers are, which the setting says
};
constexpr OtelVariable kOtelVariables[] = {
    {"OTEL_EXPORTER_OTLP_ENDPOINT", "otlp", ""},
    {"OTEL_EXPORTER_OTLP_CERTIFICATE", "otlp_ca", ""},
    {"OTEL_EXPORTER_OTLP_TIMEOUT", "otlp_timeout", "ms"},
    {"OTEL_BSP_SCHEDULE_DELAY", "otlp_delay", "ms"},
    {"OTEL_METRIC_EXPORT_INTERVAL", "otlp_interval", "ms"},
    {"OTEL_SERVICE_NAME", "otlp_service", ""},
    {"OTEL_RESOURCE_ATTRIBUTES", "otlp_resource", ""},
};

}  // namespace

void read_otel_environment(ServerConfig& config, const std::function<const char*(const char*)>& lookup) {
  // An empty variable counts as unset.
  const auto value_of = [&](const char* name) -> std::string_view {
    const char* const value = lookup(name);
    return value ? value : "";
  };
  if (value_of("OTEL_SDK_DISABLED") == "true") return;
  for (const OtelVariable& variable : kOtelVariables) {
    const std::string_view value = value_of(variable.name);
    if (!value.empty())
      config.set(variable.key, std::string(value).append(variable.unit),
                 std::string("environment ").append(variable.name));
  }
  if (value_of("OTEL_TRACES_EXPORTER") == "none")
    config.set("otlp_traces", "false", "environment OTEL_TRACES_EXPORTER");
  if (value_of("OTEL_METRICS_EXPORTER") == "none")
    config.set("otlp_metrics", "false", "environment OTEL_METRICS_EXPORTER");
  const std::string_view protocol = value_of("OTEL_EXPORTER_OTLP_PROTOCOL");
  SCONCE_CHECK(value_of("OTEL_EXPORTER_OTLP_ENDPOINT").empty() || protocol.empty() || protocol.starts_with("http/"),
               kInvalidArgument, "OTEL_EXPORTER_OTLP_PROTOCOL: OTLP is pushed over HTTP (http/json), got '",
               excerpt(protocol), "'");
}

}  // namespace sconce::server
