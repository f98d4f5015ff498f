// Routes of the admin port for named sets: listing, removal, promotion, and the routes of requests without a set.
// WeightsJob executes POST .../sets/NAME.
#pragma once

#include "server/rollout/admin_api.h"

namespace sconce::server::rollout::admin {

AdminText sets, set, remove_set, promote_set, set_version_of_set;
AdminText routes, change_routes;

}  // namespace sconce::server::rollout::admin
