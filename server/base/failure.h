// Failure: what a client is told about an exception. Pure function.
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

// What a caller wants done, for as long as it waits. Takes no memory.
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
// Does `work`; what it threw, in words, or nothing. For what may fail without anybody waiting for it.
std::string problem_of(Work work);
// The same, for another thread to throw again.
std::exception_ptr exception_of(Work work) noexcept;
// The same where nobody cares why it failed.
bool succeeds(Work work) noexcept;

}  // namespace sconce::server
