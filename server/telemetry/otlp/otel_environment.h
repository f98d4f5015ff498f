// OpenTelemetry's environment variables as settings. docs/observability.md lists the supported ones.
//
// Platforms set these variables for all pods, so an unusable value never prevents the server from starting: it is
// ignored and named in a warning, as OpenTelemetry's specification demands.
#pragma once

#include <functional>
#include <string>

#include "server/support/config.h"

namespace sconce::server::telemetry {

// Problems of the variables; empty: none.
struct OtelProblems {
  std::string endpoint;  // with the address; irrelevant if another source sets the endpoint
  std::string others;
};

// lookup: returns a variable's value, null if unset. Sources that are read later override these.
OtelProblems read_otel_environment(ServerConfig& config, const std::function<const char*(const char*)>& lookup);

}  // namespace sconce::server::telemetry
