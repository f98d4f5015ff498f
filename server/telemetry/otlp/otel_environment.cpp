#include "server/telemetry/otlp/otel_environment.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sconce/check.h"
#include "server/http/tls.h"
#include "server/support/failure.h"
#include "server/support/trim.h"
#include "server/telemetry/otlp/otlp_endpoint.h"
#include "server/telemetry/otlp/otlp_json.h"
#include "src/support/excerpt.h"

namespace sconce::server::telemetry {
namespace {

struct OtelVariable {
  const char* name;
  std::string_view key, unit;                 // unit: of plain numbers; the setting needs a unit
  void (*check)(const ServerConfig& config);  // throws if the setting cannot be used; null: no check
};

void check_endpoint(const ServerConfig& config) { (void)parse_otlp_url(config.otlp); }
void check_certificate(const ServerConfig& config) { (void)http::checked_tls(config.otlp_ca, {}, {}); }
void check_resource(const ServerConfig& config) { (void)otlp_resource(config); }
void check_above_0(std::chrono::microseconds value) {
  SCONCE_CHECK(value.count() > 0, kInvalidArgument, "must be above 0");
}

constexpr OtelVariable kOtelEndpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "otlp", "", check_endpoint};
constexpr OtelVariable kOtelVariables[] = {
    {"OTEL_EXPORTER_OTLP_CERTIFICATE", "otlp_ca", "", check_certificate},
    {"OTEL_EXPORTER_OTLP_TIMEOUT", "otlp_timeout", "ms",
     [](const auto& config) { check_above_0(config.otlp_timeout); }},
    {"OTEL_BSP_SCHEDULE_DELAY", "otlp_delay", "ms", nullptr},
    {"OTEL_METRIC_EXPORT_INTERVAL", "otlp_interval", "ms",
     [](const auto& config) { check_above_0(config.otlp_interval); }},
    {"OTEL_SERVICE_NAME", "otlp_service", "", nullptr},
    {"OTEL_RESOURCE_ATTRIBUTES", "otlp_resource", "", check_resource},
};
struct OtelSignal {
  const char *name, *key;
};
constexpr OtelSignal kOtelSignals[] = {{"OTEL_TRACES_EXPORTER", "otlp_traces"},
                                       {"OTEL_METRICS_EXPORTER", "otlp_metrics"}};

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y; });
}

void add_problem(std::string& problems, std::string_view name, std::string_view why) {
  problems.append(problems.empty() ? "" : "; ").append(name).append(": ").append(why);
}

// Applies the setting if it is usable.
void take_variable(ServerConfig& config, const OtelVariable& variable, std::string_view value, std::string& problems) {
  if (value.empty()) return;
  ServerConfig changed = config;
  const std::string problem = problem_of([&] {
    changed.set(variable.key, std::string(value).append(variable.unit), "environment");
    if (variable.check) variable.check(changed);
  });
  if (problem.empty())
    config = std::move(changed);
  else
    add_problem(problems, variable.name, problem);
}

}  // namespace

OtelProblems read_otel_environment(ServerConfig& config, const std::function<const char*(const char*)>& lookup) {
  OtelProblems problems;
  // An empty variable counts as unset.
  const auto value_of = [&](const char* name) -> std::string_view {
    const char* const value = lookup(name);
    return value ? trim(value) : "";
  };
  const std::string_view disabled = value_of("OTEL_SDK_DISABLED");
  if (same_word(disabled, "true")) {
    config.set("otlp", "off", "environment OTEL_SDK_DISABLED");
    return problems;
  }
  if (!disabled.empty() && !same_word(disabled, "false"))
    add_problem(problems.others, "OTEL_SDK_DISABLED", "expected true or false, got '" + excerpt(disabled) + "'");
  for (const OtelSignal& signal : kOtelSignals) {
    bool pushed = value_of(signal.name).empty();
    for (const std::string& one : split(std::string(value_of(signal.name)), ','))
      if (trim(one) == "otlp") pushed = true;
    if (!pushed) config.set(signal.key, "false", "environment");
  }
  if (!config.otlp_traces && !config.otlp_metrics) {
    config.set("otlp", "off", "environment OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER");
    return {};
  }
  for (const OtelVariable& variable : kOtelVariables)
    take_variable(config, variable, value_of(variable.name), problems.others);
  const std::string_view endpoint = value_of(kOtelEndpoint.name), protocol = value_of("OTEL_EXPORTER_OTLP_PROTOCOL");
  if (endpoint.empty()) return problems;
  if (protocol.empty() || protocol.starts_with("http/")) {
    take_variable(config, kOtelEndpoint, endpoint, problems.endpoint);
  } else {
    add_problem(problems.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL",
                "OTLP is pushed over HTTP, not by '" + excerpt(protocol) + "', so nothing is pushed to " +
                    excerpt(endpoint) + ": name a collector's port for HTTP (4318) by SCONCE_OTLP or --otlp");
  }
  return problems;
}

}  // namespace sconce::server::telemetry
