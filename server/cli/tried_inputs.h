// Inputs of a command: from its files, or dummy inputs that a child process has run first.
#pragma once

#include <string>

#include "server/cli/load_settings.h"
#include "server/cli/model_inputs.h"

namespace sconce::server::cli {

// Runs the model in a child process on the inputs that make_inputs() makes without files. Such inputs may be invalid:
// out of a table's bounds, zero for a divisor, or the cause of an endless loop. Returns "" if this process may run
// them: the child finished the run, or the run failed with an error; or there are files, or no inputs. Otherwise
// returns the reason. An error of loading the model is also a reason, but loading it in this process gives a better
// message. On a device, where a second process is expensive, there is no trial: kInvalidArgument, unless the user
// allows such inputs there.
std::string try_dummy_inputs(const LoadSettings& load, const InputOptions& inputs);

}  // namespace sconce::server::cli
