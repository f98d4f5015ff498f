#include "server/api/api_handler.h"

#include <utility>

#include "server/api/http_call.h"

namespace sconce::server::api {

std::unique_ptr<http::HttpStream> ApiHandler::open(http::HttpConnection& connection, http::RequestReader& reader,
                                                   http::Listeners listener, std::string peer) {
  return std::make_unique<HttpCall>(*this, connection, reader, listener, std::move(peer));
}

const registry::Catalog& ApiHandler::catalog() { return catalog_.of(admission_.repository); }

void ApiHandler::rest() noexcept { catalog_.drop(); }

}  // namespace sconce::server::api
