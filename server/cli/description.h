// Prints the description in a package, for people and as JSON. Facts that are not recorded are "unknown" (JSON: null).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sconce/package.h"

namespace sconce::server::cli {

// all: long lists are not shortened.
std::string describe_text(const Package& package, std::span<const ModelSpec* const> models, bool all);
nlohmann::ordered_json describe_json(const Package& package, std::span<const ModelSpec* const> models);

// "float32 [s77 (1..64), 16] strides [16, 1]", "float32, shape unknown".
std::string describe(const TensorSpec& spec);
// "(x, {'shift': arg1_1}, scale=arg2_1) -> output0", with tensors by their names in the generated code.
std::string describe_call(const ModelSpec& model);
// Whether it is proved that rows of the batch are independent, with the source of the proof, or the reason why not.
std::string describe_rows(const ModelSpec& model);
// Which sizes must be at least 2 and why, if torch.export recorded that and the source shows it; empty: none.
std::string describe_least_sizes(const ModelSpec& model);
const char* form_name(WeightsForm form);
// The number of constants, or the facts about them that are known before the model is loaded.
std::string describe_constants(const ModelSpec& model);
// "parameter, written by the model".
std::string marks_of(const ConstantSpec& constant);
// Functions of the C ABI that the compiled code calls: "aoti_torch_cpu_addmm_out".
std::vector<std::string> operators_of(const ModelSpec& model);

}  // namespace sconce::server::cli
