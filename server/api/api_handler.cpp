#include "server/api/api_handler.h"

#include <utility>

#include "server/api/http_call.h"

namespace sconce::server {

std::unique_ptr<HttpStream> ApiHandler::open(HttpConnection& connection, RequestReader& reader, Listeners listener,
                                             std::string peer) {
  return std::make_unique<HttpCall>(*this, connection, reader, listener, std::move(peer));
}

const Catalog& ApiHandler::catalog() {
  const uint64_t revision = admission_.repository.revision();
  if (!catalog_ || revision != catalog_revision_) {
    catalog_ = admission_.repository.snapshot();
    catalog_revision_ = revision;
  }
  return *catalog_;
}

void ApiHandler::rest() noexcept { catalog_.reset(); }

}  // namespace sconce::server
