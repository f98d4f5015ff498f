// Names of the types of constants, for documents and commands.
#pragma once

#include "sconce/package.h"

namespace sconce::server {

constexpr const char* constant_type_name(ConstantType type) noexcept {
  switch (type) {
    case ConstantType::kParameter:
      return "parameter";
    case ConstantType::kBuffer:
      return "buffer";
    case ConstantType::kTensorConstant:
      return "tensor_constant";
    case ConstantType::kFolded:
      return "folded";
    case ConstantType::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace sconce::server
