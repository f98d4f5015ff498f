// The query of an admin request. An unknown parameter is an error, because ignoring it would silently change the
// request.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sconce::server::http {

class Query {
 public:
  // kInvalidArgument for a malformed escape, a repeated parameter, or a parameter that is not in `known`.
  Query(std::string_view query, std::initializer_list<std::string_view> known);

  std::optional<std::string_view> text(std::string_view key) const noexcept;
  // True: "true", "1" or no value. False: "false", "0" or an absent key.
  bool flag(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace sconce::server::http
