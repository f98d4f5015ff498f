// Finds out by running the model whether requests may share its runs. Control thread, before the model is served.
#pragma once

#include <cstdint>

#include "sconce/model.h"
#include "server/signature/interface.h"

namespace sconce::server {

enum class RowEffort : int8_t {
  kAsTimed,  // few rows where a row takes long
  kFull,
  kFew,
};

// Whether a row gets the same answer whatever rows it shares a run with, wherever it stands among them and however many
// there are. Sets rows_independent, or rows_reason to why not or why that is not known. Rows of a run: most_rows at
// most. server/README.md tells what is tried.
void try_rows(Model& model, ModelInterface& interface, int64_t most_rows, RowEffort effort = RowEffort::kAsTimed);

}  // namespace sconce::server
