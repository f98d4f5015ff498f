// Answers to Triton's extensions that look at and change the running server: trace and log settings, shared memory.
#pragma once

#include <string_view>

#include "server/admin/service.h"
#include "server/http/response.h"
#include "server/http/router.h"

namespace sconce {

// body: of the request. Errors as the client shall see them. No path is ever set.
void handle_settings(Service& service, const Catalog& catalog, const RouteMatch& route, std::string_view body,
                     Response& response);

}  // namespace sconce
