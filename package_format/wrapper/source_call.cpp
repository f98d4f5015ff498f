#include "package_format/wrapper/source_call.h"

#include <algorithm>

namespace sconce {
namespace {

// Calls visit(index, depth) for each character outside literals, with the depth before it, until visit returns false.
template <class Visit>
void scan(std::string_view text, Visit visit) {
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i += literal_length(text.substr(i));
      continue;
    }
    if (!visit(i, depth)) return;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    ++i;
  }
}

}  // namespace

std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    const std::string_view part = trim(text.substr(begin, end - begin));
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  };
  scan(text, [&](size_t i, int depth) {
    if (depth == 0 && text[i] == ',') add(i);
    return true;
  });
  add(text.size());
  return parts;
}

std::optional<std::string_view> skip_bracketed(std::string_view& text) {
  if (text.empty() || (text.front() != '(' && text.front() != '{')) return std::nullopt;
  std::optional<std::string_view> inner;
  scan(text, [&](size_t i, int depth) {
    if (depth != 1 || (text[i] != ')' && text[i] != '}')) return true;
    inner = text.substr(1, i - 1);
    text.remove_prefix(i + 1);
    return false;
  });
  return inner;
}

std::optional<DType> cpp_dtype(std::string_view type) {
  skip(type, "const ");
  if (!skip(type, "at::")) skip(type, "c10::");
  struct Name {
    std::string_view cpp;
    DType dtype;
  };
  static constexpr Name kNames[] = {
      {"float", DType::kFloat32},
      {"int64_t", DType::kInt64},
      {"bool", DType::kBool},
      {"double", DType::kFloat64},
      {"BFloat16", DType::kBFloat16},
      {"bfloat16", DType::kBFloat16},
      {"Half", DType::kFloat16},
      {"half", DType::kFloat16},
      {"int32_t", DType::kInt32},
      {"int16_t", DType::kInt16},
      {"int8_t", DType::kInt8},
      {"uint8_t", DType::kUInt8},
      {"uint16_t", DType::kUInt16},
      {"uint32_t", DType::kUInt32},
      {"uint64_t", DType::kUInt64},
      {"complex<at::Half>", DType::kComplex32},
      {"complex<float>", DType::kComplex64},
      {"complex<double>", DType::kComplex128},
      {"Float8_e4m3fn", DType::kFloat8E4M3FN},
      {"Float8_e5m2", DType::kFloat8E5M2},
      {"Float8_e4m3fnuz", DType::kFloat8E4M3FNUZ},
      {"Float8_e5m2fnuz", DType::kFloat8E5M2FNUZ},
      {"Float8_e8m0fnu", DType::kFloat8E8M0FNU},
  };
  const auto found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& name) { return name.cpp == type; });
  return found == std::end(kNames) ? std::nullopt : std::optional(found->dtype);
}

}  // namespace sconce
