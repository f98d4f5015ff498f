#include "server/support/failure.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include "src/support/excerpt.h"

namespace sconce::server {

namespace {

// Models may produce long messages; quoted client texts are cut before.
constexpr size_t kMaxMessage = 1500;

Failure described(ErrorCode code, const char* message) {
  return {http_status(code), code, shortened(message, kMaxMessage)};
}

}  // namespace

Failure describe_failure(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const Refused& e) {
    Failure refusal = described(e.code(), e.what());
    refusal.status = 422;
    return refusal;
  } catch (const Error& e) {
    return described(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return described(ErrorCode::kOutOfMemory, "no memory for this request");
  } catch (const std::system_error& e) {
    // The system cannot start a thread now.
    if (e.code() != std::errc::resource_unavailable_try_again) return described(ErrorCode::kInternal, e.what());
    return described(ErrorCode::kUnavailable, e.what());
  } catch (const std::length_error&) {
    return described(ErrorCode::kTooLarge, "request too large");
  } catch (const std::exception& e) {
    return described(ErrorCode::kInternal, e.what());
  } catch (...) {
    return described(ErrorCode::kInternal, "unknown exception");
  }
}

bool succeeds(Work work) noexcept {
  try {
    work();
    return true;
  } catch (...) {
    return false;
  }
}

std::exception_ptr exception_of(Work work) noexcept {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

std::string problem_of(Work work) {
  try {
    work();
  } catch (...) {
    return describe_failure(std::current_exception()).message;
  }
  return {};
}

}  // namespace sconce::server
