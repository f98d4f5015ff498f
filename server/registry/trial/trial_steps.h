// The child's side of a trial: runs the model on inputs that nobody sent, and reports each step.
#pragma once

#include <memory>

#include "sconce/model.h"
#include "sconce/trial/trial_process.h"
#include "server/registry/trial/trial_request.h"

namespace sconce::server {

// Loads the model as the request says. Errors of Model::load.
std::shared_ptr<Model> load_tried_model(const TrialTask& task, const TrialRequest& request);

// The steps of a load: the warm-up run, what is not recorded of outputs, and whether rows influence each other. A step
// that fails is reported, and the next one follows. Throws what loading throws.
void try_load(const TrialTask& task, const TrialRequest& request);

}  // namespace sconce::server
