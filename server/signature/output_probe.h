// Runs the model to learn what its package does not record of outputs. Control thread, before the model is served.
#pragma once

#include "sconce/model.h"
#include "server/signature/interface.h"

namespace sconce::server {

// Finds dtype, rank and variable dimensions of outputs by two runs on zeros of different sizes. Does nothing for a
// model on a device or one that writes its buffers. Errors of made_up_inputs() and of Model::run: some models do not
// run on zeros.
void probe_outputs(Model& model, ModelInterface& interface);

}  // namespace sconce::server
