// SCONCE_CHECK throws sconce::Error if a condition is false. All other code throws without a condition.
//
//   SCONCE_CHECK(dim < rank, kInvalidArgument, "softmax: dim ", dim, " out of range for rank ", rank);
//
// Arguments are formatted only when the check fails.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "sconce/error.h"

namespace sconce::detail {

template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorCode code, const Args&... args) {
  std::ostringstream text;
  (text << ... << args);
  throw Error(code, text.str());
}

}  // namespace sconce::detail

#define SCONCE_FAIL(code, ...) ::sconce::detail::fail(::sconce::ErrorCode::code, __VA_ARGS__)
#define SCONCE_CHECK(condition, code, ...) \
  do {                                     \
    if (!(condition)) [[unlikely]]         \
      SCONCE_FAIL(code, __VA_ARGS__);      \
  } while (0)
