// Failure: what a client is told about an exception. Pure function.
#pragma once

#include <exception>
#include <string>

#include "sconce/error.h"

namespace sconce {

struct Failure {
  int status;
  ErrorCode code;
  std::string message;
};

Failure describe_failure(const std::exception_ptr& problem);

}  // namespace sconce
