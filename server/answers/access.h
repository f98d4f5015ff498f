// Who may send a request, and who loads models: one decision for every protocol.
#pragma once

#include <string>
#include <string_view>

#include "server/access/credentials.h"
#include "server/admin/service.h"
#include "server/answers/routes.h"
#include "server/base/request_id.h"
#include "server/models/control.h"

namespace sconce::server {

// Why the request's token does not do, and a line in the log about it. route: null if none was found. foreign_page: a
// page of another origin made a visitor's browser send it, which the settings do not allow for.
CredentialSet::Refusal refusal_of(Service& service, const CredentialSet& known, const Route* route, Listeners listener,
                                  std::string_view authorization, bool foreign_page);

// Gives the work to the control thread, which calls `done` at its end. kInvalidArgument, kUnavailable, kQueueFull.
void start_control(Service& service, const OnControlThread& handler, std::string_view model, std::string_view body,
                   const RequestId& id, const std::string& peer, Control::Done done);

}  // namespace sconce::server
