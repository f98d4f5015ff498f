// Answers to everything but inference: health, metadata, configuration, statistics, index, metrics, page.
#pragma once

#include <string_view>

#include "server/admin/service.h"
#include "server/http/response.h"
#include "server/http/router.h"

namespace sconce {

// body: of the request. Errors as the client shall see them.
void handle(Service& service, const Catalog& catalog, const RouteMatch& route, std::string_view body, bool accepts_html,
            Response& response);

// {"error": message}, with its status.
void answer_error(int status, std::string_view message, Response& response);

}  // namespace sconce
