// Reads the bodies of the model repository extension's requests. Pure functions.
#pragma once

#include <string_view>

namespace sconce::server {

// {"ready": BOOL} or nothing. Returns whether only ready models are asked for.
bool read_index_request(std::string_view body);

// {"parameters": {...}} or nothing. Only the server decides a model's files and configuration: parameters that would
// bring others ("config", "file:...") and unknown ones are kInvalidArgument.
void check_load_request(std::string_view body);

// {"parameters": {"unload_dependents": BOOL}} or nothing. The parameter changes nothing, since models do not depend on
// each other.
void check_unload_request(std::string_view body);

}  // namespace sconce::server
