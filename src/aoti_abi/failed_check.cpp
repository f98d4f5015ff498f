#include "src/aoti_abi/failed_check.h"

#include <string>

#include "sconce/error.h"

namespace sconce::aoti_abi {

std::exception_ptr failed_check(std::initializer_list<std::string_view> words, const char* function, const char* file,
                                uint32_t line) {
  std::string text;
  for (const std::string_view word : words) text.append(word).append(" ");
  text.append("(").append(function).append(" at ").append(file).append(":").append(std::to_string(line)).append(")");
  return std::make_exception_ptr(Error(ErrorCode::kModelFailed, text));
}

}  // namespace sconce::aoti_abi
