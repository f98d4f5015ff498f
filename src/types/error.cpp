#include "sconce/error.h"

namespace sconce {

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

Error::Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
Error::~Error() = default;

}  // namespace sconce
