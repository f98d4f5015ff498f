// Runs the model, in a child process (registry/trial/trial_steps.h), to find out whether requests may share its runs.
#pragma once

#include <cstdint>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

enum class RowEffort : int8_t {
  kAsTimed,  // fewer rows if a row takes long
  kFull,
  kFew,
};

// Tests whether a row gets the same answer whichever rows share its run, at every position, and for every batch size.
// Runs have at most most_rows rows, which must be at least twice ModelSignature::fewest_rows(). server/README.md lists
// the runs.
InvarianceFinding try_rows(Model& model, const ModelSignature& interface, int64_t most_rows,
                           RowEffort effort = RowEffort::kAsTimed);

}  // namespace sconce::server
