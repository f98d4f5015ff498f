// Finds out what a package does not record about its outputs (dtype, rank, which dimensions vary) by running the model
// twice on zeros of different sizes. Control thread, before the model is served.
#pragma once

#include "sconce/model.h"
#include "server/interface.h"

namespace sconce {

// Leaves the interface as it is where the inputs are not fully described, where a run changes the model's buffers, or
// where the inputs would be large. Errors of Model::run: some models do not run on zeros.
void probe_outputs(Model& model, ModelInterface& interface);

}  // namespace sconce
