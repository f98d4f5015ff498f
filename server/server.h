// Server: the program's HTTP side from start to end. Runs on the main thread.
#pragma once

#include <span>
#include <string>

#include "server/support/config.h"

namespace sconce::server {

// Serves until SIGTERM or SIGINT, then drains and returns. The process ends with status 1 if requests outlast
// drain_timeout, with 128 plus the number at a second signal (support/process/end_signals.h). Throws errors in
// settings, packages and addresses, and what kept the first model from being loaded (exit_on_error). Returns whether
// the program should be restarted because a model lost its devices. warnings: for the log's beginning.
bool run_server(const ServerConfig& config, std::span<const std::string> warnings = {});

}  // namespace sconce::server
