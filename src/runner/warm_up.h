// The run at load that does ahead what the first request would wait for: it packs weights, which all replicas share,
// and touches the memory that runs use.
#pragma once

#include <cstdint>
#include <string>

#include "sconce/package.h"

namespace sconce::runner {

// Bytes of constants from which on a load runs the model: preparing fewer takes the first request moments, and a load
// of so small a model takes less than a run may.
constexpr uint64_t kWarmUpBytes = uint64_t{1} << 20;

// Why runs on made-up inputs could leave a trace or not end; empty: they leave none as far as the package says.
std::string why_no_made_up_run(const ModelSpec& spec);

}  // namespace sconce::runner
