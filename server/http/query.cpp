#include "server/http/query.h"

#include <algorithm>
#include <boost/url/parse_query.hpp>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::http {

Query::Query(std::string_view query, std::initializer_list<std::string_view> known) {
  if (query.empty()) return;
  const auto parsed = boost::urls::parse_query(boost::core::string_view(query.data(), query.size()));
  SCONCE_CHECK(parsed.has_value(), kInvalidArgument, "malformed query");
  boost::urls::encoding_opts plus_is_space;
  plus_is_space.space_as_plus = true;
  // params_view would terminate the process if memory for a text is short.
  for (const boost::urls::param_pct_view& parameter : *parsed) {
    if (parameter.key.empty() && !parameter.has_value) continue;
    const std::string key = parameter.key.decode(plus_is_space);
    SCONCE_CHECK(std::find(known.begin(), known.end(), key) != known.end(), kInvalidArgument, "unknown parameter: '",
                 excerpt(key), "'");
    SCONCE_CHECK(!text(key), kInvalidArgument, "parameter given twice: '", excerpt(key), "'");
    parameters_.emplace_back(key, parameter.has_value ? parameter.value.decode(plus_is_space) : "true");
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
               excerpt(*value), "'");
  return true;
}

}  // namespace sconce::server::http
