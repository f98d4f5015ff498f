// The OpenAPI description of the server's routes: GET /openapi.json. Made from the router's own table, so that no route
// can be missing.
#pragma once

#include <string>

#include "server/http/router.h"

namespace sconce {

// Of the routes that the listener has.
std::string openapi_document(Listeners listener);

}  // namespace sconce
