// The OpenAPI description of the server's routes: GET /openapi.json. It is generated from the table of routes, so it is
// complete.
#pragma once

#include <string>

#include "server/http/router.h"

namespace sconce::server::api {

// Describes the routes of the listener.
std::string openapi_document(http::Listeners listener);

}  // namespace sconce::server::api
