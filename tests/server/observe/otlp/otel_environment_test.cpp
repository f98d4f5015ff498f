#include "server/observe/otlp/otel_environment.h"

#include <map>

#include "tests/errors.h"

using namespace sconce;
using namespace sconce::server;
using namespace std::chrono_literals;

namespace {

using Environment = std::map<std::string, std::string>;

void read(ServerConfig& config, const Environment& environment) {
  read_otel_environment(config, [&](const char* name) {
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

TEST_CASE("otel environment: errors name the variable") {
  ServerConfig config;
  CHECK(error_from([&] {
          read(config, {{"OTEL_METRIC_EXPORT_INTERVAL", "soon"}});
        }) ==
        "setting otlp_interval: expected a duration such as 200us, 250ms, 10s or 2m, a year at most, got 'soonms' "
        "(environment OTEL_METRIC_EXPORT_INTERVAL)");
  CHECK(contains(
      error_from([&] {
        read(config, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
      }),
      "OTEL_EXPORTER_OTLP_PROTOCOL: OTLP is pushed over HTTP"));
}
