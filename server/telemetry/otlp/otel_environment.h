// OpenTelemetry's environment variables as settings. docs/observability.md lists those that count.
//
// Platforms set them for all pods, whatever runs there, so a value that cannot be used here never keeps a server from
// starting: it is ignored and named in a warning, as OpenTelemetry's specification says.
#pragma once

#include <functional>
#include <string>

#include "server/support/config.h"

namespace sconce::server {

// What is wrong with the variables; empty: nothing.
struct OtelProblems {
  std::string endpoint;  // with the address; of no interest if another source says where to push
  std::string others;
};

// `lookup` returns a variable's value, null if unset. Sources that are read later win.
OtelProblems read_otel_environment(ServerConfig& config, const std::function<const char*(const char*)>& lookup);

}  // namespace sconce::server
