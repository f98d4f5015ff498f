// Inputs of a command: those of its files, or random ones that a child process has run first.
#pragma once

#include <string>

#include "server/cli/load_settings.h"
#include "server/cli/model_inputs.h"

namespace sconce::server::commands {

// Has a child process run the model on the inputs that make_inputs() makes without files. Nobody vouches for these:
// they may be out of a table's bounds, zero where the model divides, or never end its loop. Returns why this process
// must not run them, and "" if it may: if the child came to the end of the run, or to an error of it; if there are
// files, or no inputs at all. What keeps the model from loading is such a reason too, but loading it here gives a
// better error. On a device, where a second process would be dear, nothing is tried: kInvalidArgument, unless the user
// says that they may run there.
std::string try_dummy_inputs(const LoadSettings& load, const InputOptions& inputs);

}  // namespace sconce::server::commands
