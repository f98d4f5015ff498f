// What a package says, as JSON text.
#pragma once

#include <string>

#include "sconce/package.h"

namespace sconce::c_api {

std::string describe(const Package& package);
std::string describe(const CallSpec& call);  // "null" if it is not known

}  // namespace sconce::c_api
