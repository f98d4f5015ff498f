#include "server/api/document_call.h"

#include "server/api/access.h"

namespace sconce::server::api {

bool DocumentCall::write(const OnIoThread& handler, const RequestView& request, http::Response& response) {
  check_route(request.admission, request.route);
  // Uses one snapshot, because between two snapshots another load may evict the model.
  if (handler.loads && needs_load(request.admission, request.catalog, request.route.model)) {
    call_.wait_for_load(request.route.model);
    return false;
  }
  handler.answer(request, response);
  return true;
}

bool DocumentCall::resume(const OnIoThread& handler, const RequestView& request, http::Response& response) {
  call_.check_load();
  return write(handler, request, response);
}

}  // namespace sconce::server::api
