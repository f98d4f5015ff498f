// The run at load that does ahead what the first request would wait for: it packs weights, which all replicas share,
// and touches the memory that runs use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::runner {

// Bytes of constants from which on a load runs the model: preparing fewer takes the first request moments, and a load
// of so small a model takes less than a run may.
constexpr uint64_t kWarmUpBytes = uint64_t{1} << 20;

// Why runs on made-up inputs could leave a trace or not end; empty: they leave none as far as the package says.
std::string why_no_made_up_run(const ModelSpec& spec);

// One tensor per input: ones, and halves for floating-point numbers. Sizes that are not fixed are 16 if their range has
// it. kUnsupported for inputs that the package does not describe, and for too many elements.
std::vector<Tensor> made_up_inputs(const std::vector<TensorSpec>& specs);

}  // namespace sconce::runner
