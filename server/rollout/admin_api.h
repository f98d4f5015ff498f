// Routes of the admin port only: constants, weights, replicas, operations. docs/admin.md documents them.
#pragma once

#include <string>
#include <string_view>

#include "server/rollout/service.h"
#include "server/rollout/work/admin_request.h"

namespace sconce::server {

// A handler that runs on AdminThreads; returns the answer's JSON.
using AdminText = std::string(Service& service, const AdminRequest& request);
// A handler that starts its own threads. kUnavailable.
using AdminStart = void(Service& service, AdminRequest request, AdminDone done);

// Runs the handler on a new thread. kUnavailable.
void start_admin(Service& service, AdminRequest request, AdminText& handler, AdminDone done);

namespace admin {

AdminText constants, weights, weights_difference, guard, commit_weights, abort_weights, rollback_weights,
    release_weights, renumber_weights;
AdminText pushes, prepare_push, prolong_push;
AdminText replicas, add_replicas, remove_replica;
AdminText operations, operation, cancel_operation, audit, traces;
AdminStart stage_weights, active_weights, set_weights;

}  // namespace admin

// The form of the body of POST .../weights, from its Content-Type.
enum class WeightsBody : int8_t { kStream, kReference, kUnsupported };
WeightsBody weights_body(std::string_view content_type) noexcept;

}  // namespace sconce::server
