#include "src/c_api/boundary.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "sconce/error.h"

namespace sconce::c_api {
namespace {

#define SCONCE_X(enumerator, wire, status) \
  static_assert(static_cast<int>(SCONCE_##enumerator) == static_cast<int>(ErrorCode::enumerator) + 1);
constexpr int SCONCE_kInvalidArgument = SCONCE_INVALID_ARGUMENT, SCONCE_kNotFound = SCONCE_NOT_FOUND,
              SCONCE_kAlreadyExists = SCONCE_ALREADY_EXISTS, SCONCE_kFailedPrecondition = SCONCE_FAILED_PRECONDITION,
              SCONCE_kBusy = SCONCE_BUSY, SCONCE_kTooLarge = SCONCE_TOO_LARGE,
              SCONCE_kUnsupportedMedia = SCONCE_UNSUPPORTED_MEDIA, SCONCE_kQueueFull = SCONCE_QUEUE_FULL,
              SCONCE_kForbidden = SCONCE_FORBIDDEN, SCONCE_kCancelled = SCONCE_CANCELLED,
              SCONCE_kModelFailed = SCONCE_MODEL_FAILED, SCONCE_kDevice = SCONCE_DEVICE,
              SCONCE_kInternal = SCONCE_INTERNAL, SCONCE_kUnsupported = SCONCE_UNSUPPORTED,
              SCONCE_kUnavailable = SCONCE_UNAVAILABLE, SCONCE_kDeadlineExceeded = SCONCE_DEADLINE_EXCEEDED,
              SCONCE_kOutOfMemory = SCONCE_OUT_OF_MEMORY, SCONCE_kCorruptPackage = SCONCE_CORRUPT_PACKAGE,
              SCONCE_kIncompatible = SCONCE_INCOMPATIBLE, SCONCE_kIo = SCONCE_IO;
SCONCE_ERROR_CODES(SCONCE_X)  // the numbers in sconce.h never change
#undef SCONCE_X

sconce_error no_memory{SCONCE_OUT_OF_MEMORY, "out of memory"};  // fits into the string itself

sconce_error* made(ErrorCode code, const char* text) noexcept {
  try {
    return new sconce_error{static_cast<sconce_code>(static_cast<int>(code) + 1), text};
  } catch (...) {
    return &no_memory;
  }
}

thread_local bool in_callback = false;

}  // namespace

sconce_error* current_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return made(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return &no_memory;
  } catch (const std::exception& error) {
    return made(ErrorCode::kInternal, error.what());
  } catch (...) {
    return made(ErrorCode::kInternal, "unknown exception");
  }
}

sconce_error* error_of(const std::exception_ptr& exception) noexcept {
  return guarded([&] { std::rethrow_exception(exception); });
}

std::string text_of(const char* argument, const char* name) { return std::string(&required(argument, name)); }

char* given(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  SCONCE_CHECK(copy, kOutOfMemory, "no memory for a text of ", text.size(), " bytes");
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

InCallback::InCallback() noexcept : outer_(std::exchange(in_callback, true)) {}
InCallback::~InCallback() { in_callback = outer_; }

void InCallback::refuse(const char* function) {
  SCONCE_CHECK(!in_callback, kFailedPrecondition, function, " waits for runs, so it cannot be called in the callback ",
               "of one");
}

}  // namespace sconce::c_api

using namespace sconce;

sconce_code sconce_error_code(const sconce_error* error) noexcept { return error ? error->code : SCONCE_OK; }
const char* sconce_error_text(const sconce_error* error) noexcept { return error ? error->text.c_str() : ""; }
void sconce_error_free(sconce_error* error) noexcept {
  if (error != &c_api::no_memory) delete error;
}
const char* sconce_code_name(sconce_code code) noexcept {
  return code == SCONCE_OK ? "OK" : wire_name(static_cast<ErrorCode>(static_cast<int>(code) - 1));
}
void sconce_string_free(char* text) noexcept { std::free(text); }
