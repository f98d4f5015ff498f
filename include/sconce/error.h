// The only exception type of Sconce, and its codes.
#pragma once

#include <stdexcept>
#include <string>

namespace sconce {

// enumerator, wire name, HTTP status
#define SCONCE_ERROR_CODES(X)                                                                \
  X(kInvalidArgument, "INVALID_ARGUMENT", 400) /* the caller's tensors, names or settings */ \
  X(kNotFound, "NOT_FOUND", 404)                                                             \
  X(kAlreadyExists, "ALREADY_EXISTS", 400)                                                   \
  X(kFailedPrecondition, "FAILED_PRECONDITION", 400)                                         \
  X(kBusy, "BUSY", 409) /* one update at a time */                                           \
  X(kTooLarge, "TOO_LARGE", 413)                                                             \
  X(kUnsupportedMedia, "UNSUPPORTED_MEDIA", 415)                                             \
  X(kQueueFull, "QUEUE_FULL", 429)                                                           \
  X(kForbidden, "FORBIDDEN", 403)                                                            \
  X(kCancelled, "CANCELLED", 499)                                                            \
  X(kModelFailed, "MODEL_FAILED", 500) /* an assertion or exception inside the model */      \
  X(kDevice, "DEVICE", 500)                                                                  \
  X(kInternal, "INTERNAL", 500)                                                              \
  X(kUnsupported, "UNSUPPORTED", 501)                                                        \
  X(kUnavailable, "UNAVAILABLE", 503)                                                        \
  X(kDeadlineExceeded, "DEADLINE_EXCEEDED", 504)                                             \
  X(kOutOfMemory, "OUT_OF_MEMORY", 507)                                                      \
  X(kCorruptPackage, "CORRUPT_PACKAGE", 400) /* the archive or a weights file lies */        \
  X(kIncompatible, "INCOMPATIBLE", 400)      /* sound, but cannot run on this host */        \
  X(kIo, "IO", 500)

enum class ErrorCode {
#define SCONCE_X(enumerator, wire, status) enumerator,
  SCONCE_ERROR_CODES(SCONCE_X)
#undef SCONCE_X
};

const char* wire_name(ErrorCode code) noexcept;
int http_status(ErrorCode code) noexcept;

// Immutable. what() is a sentence fragment that puts fixed text first and values last.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;  // out of line, so that only libsconce has its typeinfo
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace sconce
