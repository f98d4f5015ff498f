// Documents of the admin port for the console. docs/admin.md describes them.
#pragma once

#include "server/rollout/admin_api.h"

namespace sconce::server::console::admin {

rollout::AdminText log_lines;

}  // namespace sconce::server::console::admin
