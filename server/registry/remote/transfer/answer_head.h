// The head of a remote server's answer, which may be hostile: its status, its fields, and what some of them say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::server {

struct RemoteHead {
  static constexpr size_t kMaxBytes = size_t{256} << 10;
  static constexpr size_t kMaxFields = 200;

  int status = 0;                             // 0: none came
  std::map<std::string, std::string> fields;  // names in lower case; of several of one name, the last
  size_t bytes = 0;                           // of all lines, with those of heads before this one: "100 Continue"

  std::string field(const std::string& name) const;  // empty: there is none
  // The next line, with its end. A status line begins a new head. Returns what is wrong with it; null: nothing is.
  const char* take(std::string_view line);
};

// "bytes 0-99/1000".
struct ContentRange {
  uint64_t begin = 0, end = 0, total = 0;  // [begin, end)
};
std::optional<ContentRange> parse_content_range(std::string_view text);
// Of a validator: "x" and W/"x" are x.
std::string without_quotes(std::string_view validator);
// The URL of a field Link: <...>; rel="next". Empty: there is none.
std::string next_link(const std::string& field);

}  // namespace sconce::server
