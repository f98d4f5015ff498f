// Functions that list the operators of this build and check a package's model against them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"

namespace sconce {

// Checks whether this process could load a model: symbols, libraries, instruction sets, platform. None of the model's
// code runs. kIncompatible has every reason. model_name as in Package::model, libraries of custom operators as in
// LoadOptions.
void check_runnable(const Package& package, std::string_view model_name = {},
                    std::span<const std::filesystem::path> op_libraries = {});

// Operators this build implements, sorted: "aoti_torch_cpu_addmm_out".
std::vector<std::string> implemented_operators();

}  // namespace sconce
