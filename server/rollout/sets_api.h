// Routes of the admin port about named sets: which there are, their removal, their promotion, and what requests get
// that name none. POST .../sets/NAME is WeightsJob's.
#pragma once

#include "server/rollout/admin_api.h"

namespace sconce::server::admin {

AdminText sets, set, remove_set, promote_set, renumber_set;
AdminText routes, change_routes;

}  // namespace sconce::server::admin
