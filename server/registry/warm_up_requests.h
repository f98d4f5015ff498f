// Requests that a model runs before it is served, so that first clients do not wait for slow first runs. The run on
// dummy inputs (setting warm_up) is separate: libsconce makes it while it loads a model.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/triton/model_config.h"

namespace sconce::server::registry {

// Runs every request of the files (setting warm_up_requests) and of a config.pbtxt on every replica. Random data of a
// config.pbtxt is from 0 to 1, and 0 or 1 for integers, which are valid indices of any table. Throws the error of a
// run, with the request's name, and errors of files. check: called before each run; its exceptions are passed on.
void run_warm_up_requests(Model& model, const scheduling::ModelSignature& interface, std::span<const std::string> files,
                          std::span<const scheduling::TritonWarmUp> requests, const std::function<void()>& check);

}  // namespace sconce::server::registry
