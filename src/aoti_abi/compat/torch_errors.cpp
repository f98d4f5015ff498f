// C++ functions that throw, called by torch's header-only code, which is compiled into models. They throw
// std::exception, which a model treats as any failure. Names: c10/util/Exception.h and c10/util/TypeCast.h, torch 2.6
// to 2.15.
#include <cstdint>
#include <string>

#include "sconce/error.h"
#include "src/aoti_abi/failed_check.h"
#include "src/faults/frames.h"

using sconce::aoti_abi::failed_check;

namespace c10 {
namespace {

std::exception_ptr overflow(const char* name) {
  return std::make_exception_ptr(sconce::Error(
      sconce::ErrorCode::kModelFailed, std::string("value cannot be converted to type ") + name + " without overflow"));
}

}  // namespace

SCONCE_LEAVABLE void report_overflow(const char* name) { sconce::faults::leave(overflow(name)); }

namespace detail {

struct CompileTimeEmptyString {};

[[noreturn]] SCONCE_LEAVABLE void torchCheckFail(const char* function, const char* file, uint32_t line,
                                                 const char* message) {
  sconce::faults::leave(failed_check({message}, function, file, line));
}

[[noreturn]] SCONCE_LEAVABLE void torchCheckFail(const char* function, const char* file, uint32_t line,
                                                 const std::string& message) {
  sconce::faults::leave(failed_check({message}, function, file, line));
}

[[noreturn]] SCONCE_LEAVABLE void torchInternalAssertFail(const char* function, const char* file, uint32_t line,
                                                          const char* condition, const char* message) {
  sconce::faults::leave(failed_check({condition, message}, function, file, line));
}

[[noreturn]] SCONCE_LEAVABLE void torchInternalAssertFail(const char* function, const char* file, uint32_t line,
                                                          const char* condition, const std::string& message) {
  sconce::faults::leave(failed_check({condition, message}, function, file, line));
}

[[noreturn]] SCONCE_LEAVABLE void torchInternalAssertFail(const char* function, const char* file, uint32_t line,
                                                          const char* condition, CompileTimeEmptyString) {
  sconce::faults::leave(failed_check({condition}, function, file, line));
}

}  // namespace detail
}  // namespace c10
