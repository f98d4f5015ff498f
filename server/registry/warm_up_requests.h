// Requests that a model runs before it is served, so that its first clients do not pay for first runs. The run on
// made-up inputs (setting warm_up) is another thing: libsconce makes it while it loads a model.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/triton/model_config.h"

namespace sconce::server {

// Runs every request of the files (setting warm_up_requests) and of a config.pbtxt on every replica. Random data of the
// latter is from 0 to 1, and 0 or 1 for integers, which every table has. What a request's run throws, with the
// request's name; errors of its file. check: called before each run; what it throws is passed on.
void run_warm_up_requests(Model& model, const ModelSignature& interface, std::span<const std::string> files,
                          std::span<const TritonWarmUp> requests, const std::function<void()>& check);

}  // namespace sconce::server
