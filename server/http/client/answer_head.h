// The header of a remote server's answer, which may be hostile: its status and its fields, some of them parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::server::http {

struct AnswerHead {
  static constexpr size_t kMaxBytes = size_t{256} << 10;
  static constexpr size_t kMaxFields = 200;

  int status = 0;                             // 0: no status yet
  std::map<std::string, std::string> fields;  // names in lower case; for a repeated name, the last value
  size_t bytes = 0;                           // of all lines, including those of earlier headers such as "100 Continue"

  std::string field(const std::string& name) const;  // empty: absent
  // Parses the next line, with its line end. A status line starts a new header. Returns the defect of the line; null:
  // none.
  const char* take(std::string_view line);
};

// "bytes 0-99/1000".
struct ContentRange {
  uint64_t begin = 0, end = 0, total = 0;  // [begin, end)
};
std::optional<ContentRange> parse_content_range(std::string_view text);
// Of a validator: both "x" and W/"x" become x.
std::string without_quotes(std::string_view validator);
// The URL in a field Link: <...>; rel="next". Empty: none.
std::string next_link(const std::string& field);

}  // namespace sconce::server::http
