// Planning of rows for continuous batching (decode_batch.h, docs/generate.md). Errors are kInvalidArgument and name the
// mismatch.
#pragma once

#include <cstdint>

#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/decoding/loop_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

// The number of rows of a run: from the file, or from the token input if its first dimension is fixed. 0: no continuous
// batching. All buffers that the model writes must have this number of rows.
int64_t loop_rows(const LoopSpec& spec, const ModelSignature& model);

// Fills in the plan's members about rows. All other members except `rows` must be set.
void plan_rows(const LoopSpec& spec, const ModelSignature& model, LoopPlan& plan);

}  // namespace sconce::server::scheduling
