// The query of an admin request. Strict: a parameter that is not known is an error, since what was asked for would not
// happen.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sconce::server {

class Query {
 public:
  // kInvalidArgument for malformed escapes, a parameter given twice, and one that is not among `known`.
  Query(std::string_view query, std::initializer_list<std::string_view> known);

  std::optional<std::string_view> text(std::string_view key) const noexcept;
  // "true", "1" and a key without a value; "false", "0" and no such key.
  bool flag(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace sconce::server
