// Failure: an exception in the form for clients. Pure function.
#pragma once

#include <exception>
#include <string>

#include "sconce/error.h"

namespace sconce::server {

struct Failure {
  int status;
  ErrorCode code;
  std::string message;
};

// A valid request that must not be executed, answered with 422: for example, golden requests failed with the new
// weights.
class Refused final : public Error {
 public:
  explicit Refused(const std::string& message) : Error(ErrorCode::kFailedPrecondition, message) {}
};

// A reference to a caller's function, valid during the call. Allocates nothing.
class Work {
 public:
  template <class F>
  Work(const F& work) noexcept
      : object_(&work), call_([](const void* object) { (*static_cast<const F*>(object))(); }) {}
  void operator()() const { call_(object_); }

 private:
  const void* object_;
  void (*call_)(const void*);
};

Failure describe_failure(const std::exception_ptr& problem);
// Calls `work` and returns the message of its exception, or "". For failures without a waiting client.
std::string problem_of(Work work);
// Likewise; returns the exception, to be thrown on another thread.
std::exception_ptr exception_of(Work work) noexcept;
// Likewise, if the reason does not matter.
bool succeeds(Work work) noexcept;

}  // namespace sconce::server
