// What tests ask of errors and of other texts.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "sconce/error.h"

namespace sconce::server {

// The message of the client's mistake that f() throws, or "no error".
std::string error_from(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "no error";
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace sconce::server
