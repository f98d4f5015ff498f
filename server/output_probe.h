// Finds out what a package does not record by running the model. Control thread, before the model is served.
#pragma once

#include "sconce/model.h"
#include "server/interface.h"

namespace sconce {

// What its outputs are (dtype, rank, which dimensions vary): two runs on zeros of different sizes.
// Leaves the interface as it is where the inputs are not fully described, where a run changes the model's buffers, or
// where the inputs would be large. Errors of Model::run: some models do not run on zeros.
void probe_outputs(Model& model, ModelInterface& interface);

// Whether the outputs of a row are the same whatever rows it shares a run with: a run on random rows, and two on parts
// of them. Sets rows_mixed where they are not; that, too, only where the inputs are described and small. Errors of
// Model::run: some models do not run on numbers without a meaning.
void probe_rows(Model& model, ModelInterface& interface);

}  // namespace sconce
