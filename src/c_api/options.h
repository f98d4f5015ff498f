// Converts lists and options of the C API to those of the C++ API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sconce.h"
#include "sconce/model.h"
#include "sconce/weight_sources.h"

namespace sconce::c_api {

// kInvalidArgument names the list, and the element that is null.
std::vector<std::string> texts_of(const char* const* list, size_t count, const char* name);
std::vector<std::filesystem::path> paths_of(const char* const* list, size_t count, const char* name);
std::vector<int> cores_of(const int32_t* cpus, size_t count);
// kInvalidArgument unless the member is 0 or 1.
bool switch_of(int32_t value, const char* name);

// kInvalidArgument unless the text is 64 hexadecimal digits. `name`: of the options that contain it.
Sha256Digest digest_of(const char* text, const char* name);

LoadOptions load_options_of(const sconce_load_options* options);
UpdateOptions update_options_of(const sconce_update_options* options);

}  // namespace sconce::c_api
