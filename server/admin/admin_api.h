// The admin port's own routes: constants, weights, replicas, operations. docs/admin.md is what clients are told.
//
// Everything here runs on threads of `Operations`.
#pragma once

#include <functional>

#include "server/admin/admin_request.h"
#include "server/admin/service.h"

namespace sconce {

// Starts the request; `done` is called once, on another thread, with the answer, and must not throw. kUnavailable.
void start_admin(Service& service, AdminRequest request, std::function<void(AdminAnswer)> done);

bool is_admin_action(Action action) noexcept;

// The body of POST .../weights as Content-Type names it.
enum class WeightsBody : int8_t { kStream, kReference, kUnsupported };
WeightsBody weights_body(std::string_view content_type) noexcept;

}  // namespace sconce
