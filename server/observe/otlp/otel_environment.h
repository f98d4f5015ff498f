// OpenTelemetry's environment variables as settings. docs/observability.md lists those that count.
#pragma once

#include <functional>

#include "server/base/config.h"

namespace sconce::server {

// `lookup` returns a variable's value, null if unset. Sources that are read later win. kInvalidArgument.
void read_otel_environment(ServerConfig& config, const std::function<const char*(const char*)>& lookup);

}  // namespace sconce::server
