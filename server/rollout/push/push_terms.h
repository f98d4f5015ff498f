// Parses the push parameters of a staging request. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/query.h"
#include "server/rollout/push/push_ledger.h"

namespace sconce::server::rollout {

// "500ms", "30s", "2m". kInvalidArgument; also for less than 100 ms or more than an hour.
std::chrono::milliseconds parse_lease(std::string_view text);

// push, lease, members and member of a query; nullopt without `push`. authorization: the request's field.
// kInvalidArgument.
std::optional<PushTerms> push_terms(const http::Query& query, const std::string& authorization);

// The id in `push`; kInvalidArgument if it is malformed.
std::string push_id(std::string_view text);

}  // namespace sconce::server::rollout
