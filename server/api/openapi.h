// The OpenAPI description of the server's routes: GET /openapi.json. It is made from the table of routes, so it has
// all.
#pragma once

#include <string>

#include "server/http/router.h"

namespace sconce::server {

// Describes the routes that the listener has.
std::string openapi_document(Listeners listener);

}  // namespace sconce::server
