// guard(): the only boundary between our exceptions and the C ABI. It keeps the first failure of a run for the calling
// thread, because generated code drops the text and ignores the return code of some calls.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "sconce/error.h"
#include "src/aoti_abi/abi_types.h"

namespace sconce::aoti_abi {

struct ShimError {
  ErrorCode code;
  std::string text;  // "aoti_torch_cpu_addmm_out: mat1 is null"
};

// Keeps the current exception as the thread's error unless the thread already has one. Returns 1.
AOTITorchError record_failure(const char* function) noexcept;
// Returns and clears the thread's error.
std::optional<ShimError> take_error() noexcept;
// The text of the thread's error, or "". Valid until this thread calls one of these functions again.
const char* error_text() noexcept;

template <class F>
AOTITorchError guard(const char* function, F&& body) noexcept {
  try {
    std::forward<F>(body)();
    return 0;
  } catch (...) {
    return record_failure(function);
  }
}

// Throws kOutOfMemory.
[[noreturn]] void fail_for_memory(const char* what);

// Calls body; throws kOutOfMemory if the heap is exhausted.
template <class F>
decltype(auto) in_memory(const char* what, F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const std::bad_alloc&) {
    fail_for_memory(what);
  }
}

}  // namespace sconce::aoti_abi
