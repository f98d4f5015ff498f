// Runs the model to find out whether requests may share its runs. Control thread, before the model is served.
#pragma once

#include <cstdint>

#include "sconce/model.h"
#include "server/signature/interface.h"

namespace sconce::server {

enum class RowEffort : int8_t {
  kAsTimed,  // few rows if a row takes long
  kFull,
  kFew,
};

// If a proof says that rows do not influence each other (ModelSpec::rows), tests whether a row gets the same answer
// whatever rows share its run, wherever it stands, and however many there are. Sets rows_independent, or rows_reason to
// why not or why that is unknown. Runs have at most most_rows rows.
// server/README.md lists what is tried.
void try_rows(Model& model, ModelInterface& interface, int64_t most_rows, RowEffort effort = RowEffort::kAsTimed);

}  // namespace sconce::server
