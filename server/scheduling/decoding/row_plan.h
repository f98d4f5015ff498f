// Rows: loops that share runs of a model whose state is in buffers, each in a row of them (docs/generate.md). Errors
// are kInvalidArgument and name what does not fit.
#pragma once

#include <cstdint>

#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/decoding/loop_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

// How many rows a run has: as the file says, or the token input if its first dimension is fixed. 0: loops share no runs
// in this way. All buffers that the model writes must have as many rows.
int64_t loop_rows(const LoopSpec& spec, const ModelSignature& model);

// The plan's members about rows. All other members but `rows` are there.
void plan_rows(const LoopSpec& spec, const ModelSignature& model, LoopPlan& plan);

}  // namespace sconce::server
