// Runs the model, in a child process (registry/trial/trial_steps.h), to find out whether requests may share its runs.
#pragma once

#include <cstdint>

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

enum class RowEffort : int8_t {
  kAsTimed,  // fewer rows if a row takes long
  kFull,
  kFew,
};

// Tests whether a row gets the same answer whichever rows share its run, at every position, and for every batch size.
// Runs have at most most_rows rows, which must be at least twice ModelSignature::fewest_rows(). In three steps, on
// dummy inputs:
// 1. Each row runs alone, twice, then with its inputs changed in their last places. Both answers must be equal; the
//    change measures the rounding.
// 2. Five rows run together, then again with some replaced by rows that are a thousand times larger, NaN or infinite.
// The
//    other rows must keep their answers, within four roundings of the row's largest output and the measured effect.
// 3. All these rows run in batches of 2, 3, 5 and most_rows, at other positions. Answers must equal those of the row
//    alone, within 32 roundings (512 of float32 for integer inputs) and eight times the measured effect.
// That is 46 runs with 111 to 160 rows in all. kAsTimed uses 8 rows above 1.5 ms a row, 7 above 100 ms. A row that
// needs more than 2 s, 16 million elements of inputs or 256 MiB of outputs leaves the finding open.
InvarianceFinding try_rows(Model& model, const ModelSignature& interface, int64_t most_rows,
                           RowEffort effort = RowEffort::kAsTimed);

}  // namespace sconce::server::scheduling
