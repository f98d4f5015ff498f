// What this build of the library can run, and whether it can run a package's model.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"

namespace sconce {

// Checks whether this process could load a model: symbols, libraries, instruction sets, platform. None of the model's
// code runs. kIncompatible has every reason. Name as in Package::model, libraries of custom operators as in
// LoadOptions.
void check_runnable(const Package& package, std::string_view model_name = {},
                    std::span<const std::filesystem::path> op_libraries = {});

// Operators this build implements, sorted: "aoti_torch_cpu_addmm_out".
std::vector<std::string> implemented_operators();

}  // namespace sconce
