// ErrorContext: during its lifetime, every Error made on this thread ends with the context, unless the message already
// contains it: "member's name is empty: ", ... -> "... [/models/net.pt2]".
#pragma once

#include <string>

namespace sconce {

class ErrorContext {
 public:
  explicit ErrorContext(const std::string& where) noexcept;  // borrowed
  ~ErrorContext();
  ErrorContext(const ErrorContext&) = delete;
  ErrorContext& operator=(const ErrorContext&) = delete;

  // The message with the innermost context, if there is one.
  static std::string added_to(const std::string& message);

 private:
  const std::string& where_;
  const ErrorContext* outer_;
};

}  // namespace sconce
