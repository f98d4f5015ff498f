// What this build of the library can run, and whether a package's model is among it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"

namespace sconce {

// Whether a model could be loaded in this process: symbols, libraries, instruction sets, platform; none of its code
// runs. kIncompatible with every reason against it. The name as in Package::model; the libraries of custom operators as
// in LoadOptions.
void check_runnable(const Package& package, std::string_view model_name = {},
                    std::span<const std::filesystem::path> op_libraries = {});

// Operators this build implements, sorted: "aoti_torch_cpu_addmm_out".
std::vector<std::string> implemented_operators();

}  // namespace sconce
