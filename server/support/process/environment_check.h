// Names of environment variables that look like settings and are none.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

// One line about the variables SCONCE_* that nothing reads, each with the setting that may be meant; empty: there are
// none. environment: NAME=VALUE, as the process has it, ended by null. What Kubernetes sets for services whose names
// begin with sconce, and what other programs of this tree read, is passed over.
std::string unknown_variables(const char* const* environment);

}  // namespace sconce::server
