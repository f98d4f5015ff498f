// Server: the program's server from start to end. Runs on the main thread.
#pragma once

#include <span>
#include <string>

#include "server/support/config.h"

namespace sconce::server {

// Serves until SIGTERM or SIGINT, then drains and returns. The process exits with status 1 if requests outlast
// drain_timeout, and with 128 plus the signal number at a second signal (support/process/end_signals.h). Throws errors
// in settings, packages and addresses, and the error of loading the first model (exit_on_error). Returns whether the
// program should be restarted because a model lost its devices. warnings: logged first.
bool run_server(const ServerConfig& config, std::span<const std::string> warnings = {});

}  // namespace sconce::server
