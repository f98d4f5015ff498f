// Failure: what a client is told about an exception. Pure function.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "sconce/error.h"

namespace sconce {

struct Failure {
  int status;
  ErrorCode code;
  std::string message;
};

Failure describe_failure(const std::exception_ptr& problem);
// Does `work`; what it threw, in words, or nothing. For what may fail without anybody waiting for it.
std::string problem_of(const std::function<void()>& work);
// The same, for another thread to throw again.
std::exception_ptr exception_of(const std::function<void()>& work) noexcept;
// The same where nobody cares why it failed.
bool succeeds(const std::function<void()>& work) noexcept;

}  // namespace sconce
