// Server: the program's HTTP side from start to end. Main thread.
#pragma once

#include "server/base/config.h"

namespace sconce::server {

// Serves until SIGTERM or SIGINT, then drains and returns. Requests that outlast drain_timeout end the process with
// status 1, a second signal with 128 and its number. Errors in settings, packages and addresses are thrown, as is what
// kept the first model from being loaded (exit_on_error).
// Returns whether the program is to be started anew, since a model's devices are lost to this process.
bool run_server(const ServerConfig& config);

}  // namespace sconce::server
