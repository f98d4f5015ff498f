// Parses the bodies of the model repository extension's requests. Pure functions.
#pragma once

#include <string_view>

namespace sconce::server::registry {

// {"ready": BOOL} or empty. Returns whether only ready models are asked for.
bool read_index_request(std::string_view body);

// {"parameters": {...}} or empty. Only the server decides on a model's files and configuration: parameters that would
// supply them ("config", "file:...") and unknown parameters are kInvalidArgument.
void check_load_request(std::string_view body);

// {"parameters": {"unload_dependents": BOOL}} or empty. The parameter has no effect, because models do not depend on
// each other.
void check_unload_request(std::string_view body);

}  // namespace sconce::server::registry
