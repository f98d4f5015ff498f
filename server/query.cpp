#include "server/query.h"

#include <algorithm>
#include <boost/url/parse_query.hpp>

#include "sconce/check.h"

namespace sconce {

Query::Query(std::string_view query, std::initializer_list<std::string_view> known) {
  if (query.empty()) return;
  const auto parsed = boost::urls::parse_query(boost::core::string_view(query.data(), query.size()));
  SCONCE_CHECK(parsed.has_value(), kInvalidArgument, "malformed query");
  for (const auto& parameter : boost::urls::params_view(*parsed)) {
    if (parameter.key.empty() && !parameter.has_value) continue;
    SCONCE_CHECK(std::find(known.begin(), known.end(), parameter.key) != known.end(), kInvalidArgument,
                 "unknown parameter: '", parameter.key, "'");
    SCONCE_CHECK(!text(parameter.key), kInvalidArgument, "parameter given twice: '", parameter.key, "'");
    parameters_.emplace_back(parameter.key, parameter.has_value ? parameter.value : "true");
  }
}

std::optional<std::string_view> Query::text(std::string_view key) const noexcept {
  for (const auto& [name, value] : parameters_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool Query::flag(std::string_view key) const {
  const std::optional<std::string_view> value = text(key);
  if (!value || *value == "false" || *value == "0") return false;
  SCONCE_CHECK(*value == "true" || *value == "1", kInvalidArgument, "parameter ", key, " must be true or false, got '",
               *value, "'");
  return true;
}

}  // namespace sconce
