// Routes for the shadow of a model's staged set (docs/validation.md).
#pragma once

#include "package_format/text/json_value.h"
#include "server/rollout/admin_api.h"
#include "server/weights/validation/shadow.h"

namespace sconce::server::rollout {

// The shadow's member in the document of sets: {"state": "running", "compared": 90, ...}
OrderedJson shadow_in_short(const weights::Shadow::Report& report);

namespace admin {

AdminText shadow, change_shadow;

}  // namespace admin
}  // namespace sconce::server::rollout
