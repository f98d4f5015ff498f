// The boundary of the C API: no exception passes it. Each exported function runs its body in guarded().
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "sconce.h"
#include "sconce/check.h"

struct sconce_error {
  sconce_code code;
  std::string text;
};

namespace sconce::c_api {

// The current exception as an error for the caller. If no memory is left for it, returns a shared static error.
sconce_error* current_error() noexcept;
sconce_error* error_of(const std::exception_ptr& exception) noexcept;

template <class F>
sconce_error* guarded(F&& body) noexcept {
  try {
    std::forward<F>(body)();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

// kInvalidArgument names the argument if it is null.
template <class T>
T& required(T* argument, const char* name) {
  SCONCE_CHECK(argument, kInvalidArgument, name, " is null");
  return *argument;
}

// The text; kInvalidArgument if it is null.
std::string text_of(const char* argument, const char* name);
// A copy that the caller frees with sconce_string_free().
char* given(const std::string& text);
// Copies the text into a member of a struct, truncated to fit, with a zero byte.
template <size_t kBytes>
void put_text(char (&to)[kBytes], const std::string& text) noexcept {
  to[text.copy(to, kBytes - 1)] = '\0';
}

// Marks this thread as inside a callback of a run, where waiting for runs would deadlock.
class InCallback {
 public:
  InCallback() noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static void refuse(const char* function);  // kFailedPrecondition in a callback

 private:
  bool outer_;
};

}  // namespace sconce::c_api
