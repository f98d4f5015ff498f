// The OpenAPI description of the server's routes: GET /openapi.json. Made from the table of routes, so that none can be
// missing.
#pragma once

#include <string>

#include "server/http/router.h"

namespace sconce::server {

// Of the routes that the listener has.
std::string openapi_document(Listeners listener);

}  // namespace sconce::server
