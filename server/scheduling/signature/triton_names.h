// The names of inputs and outputs in a config.pbtxt, for clients that use them.
#pragma once

#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/triton/model_config.h"

namespace sconce::server::scheduling {

// Gives the model's tensors the names in the file; the package's names are still accepted. A name that the package
// knows (INPUT__1, ARGS[0]) means that tensor; any other name means the tensor at its position in the file.
// kInvalidArgument if the number of tensors, datatypes or sizes differ from the package's. Controls become
// ModelSignature::controls.
void take_names(const TritonConfig& config, ModelSignature& interface);

}  // namespace sconce::server::scheduling
