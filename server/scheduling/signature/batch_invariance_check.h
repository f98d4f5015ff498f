// Runs the model to find out whether requests may share its runs. In a child process (registry/trial/trial_steps.h).
#pragma once

#include <cstdint>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

enum class RowEffort : int8_t {
  kAsTimed,  // few rows if a row takes long
  kFull,
  kFew,
};

// Tests whether a row gets the same answer whatever rows share its run, wherever it stands, and however many there are.
// Runs have at most most_rows rows, which is at least twice ModelSignature::fewest_rows(). server/README.md lists the
// runs.
InvarianceFinding try_rows(Model& model, const ModelSignature& interface, int64_t most_rows,
                           RowEffort effort = RowEffort::kAsTimed);

}  // namespace sconce::server
