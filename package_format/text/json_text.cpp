#include "package_format/text/json_text.h"

#include "package_format/text/json_value.h"
#include "sconce/check.h"

namespace sconce {
namespace {

void check_depth(std::string_view text, std::string_view what, int levels) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      SCONCE_CHECK(++depth <= levels, kCorruptPackage, what, " is nested deeper than ", levels, " levels");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

SortedJson parse_json(std::string_view text, std::string_view what, int levels) {
  check_depth(text, what, levels);
  return SortedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace sconce
