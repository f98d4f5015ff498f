// Names of the types of constants, for documents and commands.
#pragma once

#include "sconce/package.h"
#include "server/support/enum_name.h"

namespace sconce::server::scheduling {

constexpr const char* constant_type_name(ConstantType type) noexcept {
  return server::name_of(type, {"unknown", "parameter", "buffer", "tensor_constant", "folded"});
}

}  // namespace sconce::server::scheduling
