// Detects environment variables that look like settings and are not.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

// One line about unknown variables SCONCE_*, each with the setting that may be meant; empty: none. environment: the
// process's NAME=VALUE texts, ended by null. Variables that Kubernetes sets for services whose names begin with sconce,
// and those of other programs of this project, are ignored.
std::string unknown_variables(const char* const* environment);

}  // namespace sconce::server
