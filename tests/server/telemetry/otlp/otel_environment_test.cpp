#include "server/telemetry/otlp/otel_environment.h"

#include <map>

#include "tests/errors.h"

namespace sconce::server::telemetry {

using namespace std::chrono_literals;

namespace {

using Environment = std::map<std::string, std::string>;

OtelProblems read(ServerConfig& config, const Environment& environment) {
  return read_otel_environment(config, [&](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
}

}  // namespace

TEST_CASE("otel environment: variables are settings, which later sources win over") {
  ServerConfig config;
  config.set("otlp_timeout", "1s", "file");
  read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"},
                {"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"},
                {"OTEL_METRIC_EXPORT_INTERVAL", "1000"},
                {"OTEL_BSP_SCHEDULE_DELAY", "250"},
                {"OTEL_SERVICE_NAME", "digits"},
                {"OTEL_RESOURCE_ATTRIBUTES", "a=1,b=x%2Cy"},
                {"OTEL_TRACES_EXPORTER", "otlp"},
                {"OTEL_METRICS_EXPORTER", "none"}});
  CHECK(config.otlp == "http://c:4318");
  CHECK(config.otlp_timeout == 2500ms);
  CHECK(config.otlp_interval == 1s);
  CHECK(config.otlp_delay == 250ms);
  CHECK(config.otlp_service == "digits");
  CHECK(config.otlp_resource == std::vector<std::string>{"a=1", "b=x%2Cy"});
  CHECK(config.otlp_traces);
  CHECK_FALSE(config.otlp_metrics);
  config.read_environment([](const char* name) { return std::string(name) == "SCONCE_OTLP" ? "off" : nullptr; });
  CHECK(config.otlp == "off");
}

TEST_CASE("otel environment: empty variables count as unset, and OTEL_SDK_DISABLED leaves all out") {
  ServerConfig config;
  read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
  CHECK(config.otlp == "off");
  read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}, {"OTEL_SDK_DISABLED", "true"}});
  CHECK(config.otlp == "off");
}

TEST_CASE("otel environment: a value that cannot be used is ignored, and named") {
  const std::pair<const char*, const char*> kBad[] = {{"OTEL_METRIC_EXPORT_INTERVAL", "soon"},
                                                      {"OTEL_METRIC_EXPORT_INTERVAL", "0"},
                                                      {"OTEL_METRIC_EXPORT_INTERVAL", "-1"},
                                                      {"OTEL_BSP_SCHEDULE_DELAY", "5s"},
                                                      {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
                                                      {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
                                                      {"OTEL_RESOURCE_ATTRIBUTES", "broken,k=v"},
                                                      {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem"},
                                                      {"OTEL_SDK_DISABLED", "perhaps"}};
  for (const auto& [name, value] : kBad) {
    CAPTURE(name);
    ServerConfig config, as_before;
    const OtelProblems problems = read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}, {name, value}});
    CHECK(config.otlp == "http://c");
    CHECK(problems.endpoint.empty());
    CHECK(contains(problems.others, name));
    CHECK(config.otlp_interval == as_before.otlp_interval);
    CHECK(config.otlp_delay == as_before.otlp_delay);
    CHECK(config.otlp_timeout == as_before.otlp_timeout);
    CHECK(config.otlp_resource.empty());
    CHECK(config.otlp_ca.empty());
  }
  ServerConfig config;
  const OtelProblems two = read(config, {{"OTEL_METRIC_EXPORT_INTERVAL", "x"}, {"OTEL_BSP_SCHEDULE_DELAY", "y"}});
  CHECK(contains(two.others, "OTEL_METRIC_EXPORT_INTERVAL"));
  CHECK(contains(two.others, "OTEL_BSP_SCHEDULE_DELAY"));
}

TEST_CASE("otel environment: an address that cannot be used pushes nothing") {
  for (const char* const address : {"collector:4317", "http://", "http://u:p@c", "grpc://c:4317"}) {
    ServerConfig config;
    CHECK(contains(read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", address}}).endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT"));
    CHECK(config.otlp == "off");
  }
  ServerConfig config;
  const OtelProblems problems =
      read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
  CHECK(config.otlp == "off");
  CHECK(contains(problems.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL: OTLP is pushed over HTTP, not by 'grpc'"));
}

TEST_CASE("otel environment: what turns pushing off") {
  const auto otlp = [](const Environment& more) {
    ServerConfig config;
    config.set("otlp", "http://from.file", "file");
    Environment all = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}};
    all.insert(more.begin(), more.end());
    const OtelProblems problems = read(config, all);
    CHECK(problems.endpoint.empty());
    CHECK(problems.others.empty());
    return config.otlp;
  };
  CHECK(otlp({{"OTEL_SDK_DISABLED", "TRUE"}}) == "off");
  CHECK(otlp({{"OTEL_TRACES_EXPORTER", "none"}, {"OTEL_METRICS_EXPORTER", "none"}}) == "off");
  CHECK(otlp({{"OTEL_TRACES_EXPORTER", "console"}, {"OTEL_METRICS_EXPORTER", "prometheus"}}) == "off");
  ServerConfig config;
  read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                {"OTEL_TRACES_EXPORTER", "console, otlp"},
                {"OTEL_METRICS_EXPORTER", "prometheus"}});
  CHECK(config.otlp_traces);
  CHECK_FALSE(config.otlp_metrics);
}

}  // namespace sconce::server::telemetry
