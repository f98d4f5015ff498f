#include "sconce/error.h"

#include "src/support/error_context.h"

namespace sconce {
namespace {

thread_local const ErrorContext* innermost = nullptr;

}  // namespace

ErrorContext::ErrorContext(const std::string& where) noexcept : where_(where), outer_(innermost) { innermost = this; }
ErrorContext::~ErrorContext() { innermost = outer_; }

std::string ErrorContext::added_to(const std::string& message) {
  if (!innermost || message.find(innermost->where_) != std::string::npos) return message;
  return message + " [" + innermost->where_ + "]";
}

const char* wire_name(ErrorCode code) noexcept {
  switch (code) {
#define SCONCE_X(enumerator, wire, status) \
  case ErrorCode::enumerator:              \
    return wire;
    SCONCE_ERROR_CODES(SCONCE_X)
#undef SCONCE_X
  }
  return "UNKNOWN";
}

int http_status(ErrorCode code) noexcept {
  switch (code) {
#define SCONCE_X(enumerator, wire, status) \
  case ErrorCode::enumerator:              \
    return status;
    SCONCE_ERROR_CODES(SCONCE_X)
#undef SCONCE_X
  }
  return 500;
}

namespace {

// what() ends at the first NUL, which a client's text may contain.
std::string visible(std::string message) {
  for (size_t at = 0; (at = message.find('\0', at)) != std::string::npos;) message.replace(at, 1, "\\0");
  return message;
}

}  // namespace

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(visible(ErrorContext::added_to(message))), code_(code) {}
Error::~Error() = default;

}  // namespace sconce
