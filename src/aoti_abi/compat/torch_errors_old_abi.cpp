// torchCheckFail and torchInternalAssertFail as models of torch 2.6 import them: with the std::string from before
// C++11. Compiled with _GLIBCXX_USE_CXX11_ABI=0; passes plain C strings on.
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
