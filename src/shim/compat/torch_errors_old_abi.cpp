// torchCheckFail and torchInternalAssertFail as models of torch 2.6 import them, which are built with the std::string
// of before C++11. This file is compiled with _GLIBCXX_USE_CXX11_ABI=0 and hands on plain C strings.
#include <cstdint>
#include <string>

namespace c10::detail {

[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const char* message);
[[noreturn]] void torchInternalAssertFail(const char* function, const char* file, uint32_t line, const char* condition,
                                          const char* message);

[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const std::string& message) {
  torchCheckFail(function, file, line, message.c_str());
}

[[noreturn]] void torchInternalAssertFail(const char* function, const char* file, uint32_t line, const char* condition,
                                          const std::string& message) {
  torchInternalAssertFail(function, file, line, condition, message.c_str());
}

}  // namespace c10::detail
