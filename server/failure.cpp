#include "server/failure.h"

#include <new>
#include <stdexcept>
#include <system_error>

namespace sconce {

Failure describe_failure(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const Error& e) {
    return {http_status(e.code()), e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    return {http_status(ErrorCode::kOutOfMemory), ErrorCode::kOutOfMemory, "no memory for this request"};
  } catch (const std::system_error& e) {
    // A thread that cannot be started now.
    if (e.code() != std::errc::resource_unavailable_try_again) return {500, ErrorCode::kInternal, e.what()};
    return {http_status(ErrorCode::kUnavailable), ErrorCode::kUnavailable, e.what()};
  } catch (const std::length_error&) {
    return {http_status(ErrorCode::kTooLarge), ErrorCode::kTooLarge, "request too large"};
  } catch (const std::exception& e) {
    return {500, ErrorCode::kInternal, e.what()};
  } catch (...) {
    return {500, ErrorCode::kInternal, "unknown exception"};
  }
}

bool succeeds(const std::function<void()>& work) noexcept {
  try {
    work();
    return true;
  } catch (...) {
    return false;
  }
}

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return describe_failure(std::current_exception()).message;
  }
  return {};
}

}  // namespace sconce
