// Access control for requests, and manual loads: one decision for every protocol.
#pragma once

#include <string>
#include <string_view>

#include "server/api/admission.h"
#include "server/api/routes.h"
#include "server/http/access/credentials.h"
#include "server/registry/model_loader.h"
#include "server/support/request_id.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::api {

// Why the request's token is not sufficient; the refusal is logged. route: null if no route matched. foreign_page: a
// page of another origin sent the request through a visitor's browser, and the settings do not allow that.
http::CredentialSet::Refusal refusal_of(const ServerConfig& config, telemetry::Telemetry& telemetry,
                                        const http::CredentialSet& known, const Route* route, http::Listeners listener,
                                        std::string_view authorization, bool foreign_page);

// Whether the matching route takes the request. kForbidden: it is not for this listener. kNotFound: "model@set" names a
// model only for routes that distinguish its sets.
void check_route(const Admission& admission, const http::RouteMatch& match);

// Whether the model is not loaded, but will be for a request that names it.
bool needs_load(const Admission& admission, const registry::Catalog& catalog, std::string_view model);

// Queues the work for the loader thread, which calls `done` at the end. match: its route has the handler.
// kInvalidArgument, kUnavailable, kQueueFull; errors of check_route().
void start_control(Admission& admission, const OnControlThread& handler, const http::RouteMatch& match,
                   std::string_view body, const RequestId& id, const std::string& peer,
                   registry::ModelLoader::Done done);

}  // namespace sconce::server::api
