// Common parameters of requests for new weights: mode and ignore. kInvalidArgument.
#pragma once

#include <string_view>

#include "sconce/weights.h"
#include "server/http/query.h"

namespace sconce::server::rollout {

// Sets UpdateOptions::full from mode=full or mode=partial, or to `full` if there is no mode. Adds the names of
// ignore=NAME,...
void read_update_query(const http::Query& query, bool full, UpdateOptions& options);
// The name must not be empty.
void add_ignored(std::string_view name, UpdateOptions& options);

}  // namespace sconce::server::rollout
