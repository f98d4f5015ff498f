// The bodies of the model repository extension's requests. Pure functions.
#pragma once

#include <string_view>

namespace sconce::server {

// {"ready": BOOL} or nothing: whether only models that are ready are asked for.
bool read_index_request(std::string_view body);

// {"parameters": {...}} or nothing. A model's files and its configuration are the server's own affair: parameters that
// would bring others ("config", "file:...") are kInvalidArgument, as are unknown ones.
void check_load_request(std::string_view body);

// {"parameters": {"unload_dependents": BOOL}} or nothing. No model depends on another: the parameter changes nothing.
void check_unload_request(std::string_view body);

}  // namespace sconce::server
