// The child process of a trial: runs the model on dummy inputs, and reports each step.
#pragma once

#include <memory>

#include "sconce/model.h"
#include "sconce/trial/trial_process.h"
#include "server/registry/trial/trial_request.h"

namespace sconce::server::registry {

// Loads the model as requested. Errors of Model::load.
std::shared_ptr<Model> load_tried_model(const TrialTask& task, const TrialRequest& request);

// The steps of a load: the warm-up run, the outputs that the package does not describe, and the batch invariance check.
// A failed step is reported, and the next step follows. Throws errors of loading.
void try_load(const TrialTask& task, const TrialRequest& request);

}  // namespace sconce::server::registry
