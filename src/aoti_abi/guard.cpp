#include "src/aoti_abi/guard.h"

#include <new>

#include "sconce/check.h"

namespace sconce::aoti_abi {
namespace {

thread_local std::optional<ShimError> last_error;

void keep(const char* function, ErrorCode code, const char* what) noexcept {
  if (last_error) return;
  try {
    last_error.emplace(ShimError{code, std::string(function) + ": " + what});
  } catch (...) {
    last_error.emplace(ShimError{ErrorCode::kOutOfMemory, {}});
  }
}

}  // namespace

AOTITorchError record_failure(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    keep(function, e.code(), e.what());
  } catch (const std::bad_alloc&) {
    keep(function, ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& e) {
    keep(function, ErrorCode::kInternal, e.what());
  } catch (...) {
    keep(function, ErrorCode::kInternal, "unknown exception");
  }
  return 1;
}

void fail_for_memory(const char* what) { SCONCE_FAIL(kOutOfMemory, what, ": out of memory"); }

const char* error_text() noexcept { return last_error ? last_error->text.c_str() : ""; }

std::optional<ShimError> take_error() noexcept { return std::exchange(last_error, std::nullopt); }

}  // namespace sconce::aoti_abi
