#include "server/rollout/work/update_query.h"

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {

void add_ignored(std::string_view name, UpdateOptions& options) {
  SCONCE_CHECK(!name.empty(), kInvalidArgument, "a name in 'ignore' is empty");
  options.ignore.emplace_back(name);
}

void read_update_query(const http::Query& query, bool full, UpdateOptions& options) {
  const std::string_view mode = query.text("mode").value_or(full ? "full" : "partial");
  SCONCE_CHECK(mode == "full" || mode == "partial", kInvalidArgument, "parameter mode must be full or partial, got '",
               excerpt(mode), "'");
  options.full = mode == "full";
  const auto names = query.text("ignore");
  if (!names) return;
  for (std::string_view rest = *names;;) {
    const size_t comma = rest.find(',');
    add_ignored(rest.substr(0, comma), options);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace sconce::server::rollout
