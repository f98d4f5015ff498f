// guard(): the only place where an exception of ours meets the C ABI. The first failure of a run is kept for the
// calling thread, because generated code drops the text, and the code of some calls altogether.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "sconce/error.h"
#include "src/shim/abi_types.h"

namespace sconce::shim {

struct ShimError {
  ErrorCode code;
  std::string text;  // "aoti_torch_cpu_addmm_out: mat1 is null"
};

// Keeps the exception in flight as the thread's error unless one is kept already. Returns 1.
AOTITorchError record_failure(const char* function) noexcept;
// What went wrong on this thread since the last call; empties it.
std::optional<ShimError> take_error() noexcept;
// Its text, "" where nothing went wrong; valid until the next call of any of these on this thread.
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

// Calls body. Where the heap has no memory for it, that is an error of ours like any other.
template <class F>
decltype(auto) in_memory(const char* what, F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const std::bad_alloc&) {
    fail_for_memory(what);
  }
}

}  // namespace sconce::shim
