// C++ functions that torch's header-only code, compiled into models, calls to throw. They throw std::exception, which a
// model takes for any failure. Names: c10/util/Exception.h and c10/util/TypeCast.h, torch 2.6 to 2.15.
#include <cstdint>
#include <string>

#include "sconce/check.h"

namespace c10 {

void report_overflow(const char* name) {
  SCONCE_FAIL(kModelFailed, "value cannot be converted to type ", name, " without overflow");
}

namespace detail {

struct CompileTimeEmptyString {};

[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const char* message) {
  SCONCE_FAIL(kModelFailed, message, " (", function, " at ", file, ":", line, ")");
}

[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const std::string& message) {
  torchCheckFail(function, file, line, message.c_str());
}

[[noreturn]] void torchInternalAssertFail(const char* function, const char* file, uint32_t line, const char* condition,
                                          const char* message) {
  SCONCE_FAIL(kModelFailed, condition, " ", message, " (", function, " at ", file, ":", line, ")");
}

[[noreturn]] void torchInternalAssertFail(const char* function, const char* file, uint32_t line, const char* condition,
                                          const std::string& message) {
  torchInternalAssertFail(function, file, line, condition, message.c_str());
}

[[noreturn]] void torchInternalAssertFail(const char* function, const char* file, uint32_t line, const char* condition,
                                          CompileTimeEmptyString) {
  torchCheckFail(function, file, line, condition);
}

}  // namespace detail
}  // namespace c10
