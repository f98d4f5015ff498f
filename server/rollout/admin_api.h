// Routes of the admin port only: constants, weights, replicas, operations. docs/admin.md documents them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "server/http/query.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server::rollout {

// A handler that runs on AdminThreads; returns the answer's JSON.
using AdminText = std::string(Rollout& rollout, const AdminRequest& request);
// A handler that starts its own threads. kUnavailable.
using AdminStart = void(Rollout& rollout, AdminRequest request, AdminDone done);

// Runs the handler, which returns the answer's JSON, on a new thread. kUnavailable.
void start_admin(AdminThreads& threads, AdminRequest request, std::function<std::string(const AdminRequest&)> handler,
                 AdminDone done);

// The parameter `limit`; 100 by default. kInvalidArgument.
size_t limit_of(const http::Query& query);

namespace admin {

AdminText constants, weights, weights_difference, guard, commit_weights, abort_weights, rollback_weights,
    release_weights, set_weight_version;
AdminText pushes, prepare_push, renew_push;
AdminText replicas, add_replicas, remove_replica;
AdminText operations, operation, cancel_operation, audit;
AdminStart stage_weights, active_weights, set_weights;

}  // namespace admin

// The form of the body of POST .../weights, from its Content-Type.
enum class WeightsBody : int8_t { kStream, kReference, kUnsupported };
WeightsBody weights_body(std::string_view content_type) noexcept;

}  // namespace sconce::server::rollout
