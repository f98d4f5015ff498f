// Handlers of the admin port that describe the server instead of a model. docs/admin.md documents them.
#pragma once

#include <string>

#include "server/api/admission.h"
#include "server/rollout/work/admin_request.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::api {

// A handler that runs on AdminThreads; returns the answer's JSON.
using ServerText = std::string(const Admission& admission, const telemetry::Telemetry& telemetry,
                               const rollout::AdminRequest& request);

namespace admin {

ServerText access, traces;

}  // namespace admin

}  // namespace sconce::server::api
