// Who may send a request, and who loads models: one decision for every protocol.
#pragma once

#include <string>
#include <string_view>

#include "server/admin/service.h"
#include "server/answers/routes.h"
#include "server/base/request_id.h"
#include "server/http/credentials.h"
#include "server/models/control.h"

namespace sconce::server {

// Why the request's token does not do, and a line in the log about it. route: null if none was found. from_page: any
// web page could make a visitor's browser send it.
CredentialSet::Refusal refusal_of(Service& service, const CredentialSet& known, const Route* route, Listeners listener,
                                  std::string_view authorization, bool from_page);

// Whether a web page with this Origin came from the server that its request's Host names, so that the page is the
// console and not somebody else's.
bool is_own_page(std::string_view origin, std::string_view host);

// Gives the work to the control thread, which calls `done` at its end. kInvalidArgument, kUnavailable, kQueueFull.
void start_control(Service& service, const OnControlThread& handler, std::string_view model, std::string_view body,
                   const RequestId& id, const std::string& peer, Control::Done done);

}  // namespace sconce::server
