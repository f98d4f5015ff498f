// What tests ask of errors and of other texts.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>

#include "sconce/error.h"

namespace sconce {

// The code of the error that f() throws; none if it throws nothing.
std::optional<ErrorCode> code_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return std::nullopt;
}

// The message of the error that f() throws, which must have this code; "no error" if it throws nothing.
std::string error_from(ErrorCode code, auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK_MESSAGE(e.code() == code, std::string(e.what()));
    return e.what();
  }
  return "no error";
}

// The same for a mistake of the caller.
std::string error_from(auto&& f) { return error_from(ErrorCode::kInvalidArgument, f); }

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace sconce
