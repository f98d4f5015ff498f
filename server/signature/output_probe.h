// Finds out what a package does not record of its outputs by running the model. Control thread, before it is served.
#pragma once

#include "sconce/model.h"
#include "server/signature/interface.h"

namespace sconce::server {

// What its outputs are (dtype, rank, which dimensions vary): two runs on zeros of different sizes.
// Leaves the interface as it is where the inputs are not fully described, where a run changes the model's buffers, or
// where the inputs would be large. Errors of Model::run: some models do not run on zeros.
void probe_outputs(Model& model, ModelInterface& interface);

}  // namespace sconce::server
