// DocumentCall: a request for a document of a route with OnIoThread, the same for every protocol. The route is checked
// before the wait and again before the answer. If it needs a model that is not loaded, the Call waits for the load,
// with the deadline of any request to the model.
//
//   kNone --write()--> kNone                     the document is written
//   kNone --write()--> kLoader --notice--> kNone   then resume()
//
// Used by one thread at a time, like the Call.
#pragma once

#include "server/api/call.h"
#include "server/api/handlers.h"
#include "server/api/routes.h"
#include "server/http/response.h"

namespace sconce::server::api {

class DocumentCall {
 public:
  // The call has begun, and outlives the object.
  explicit DocumentCall(Call& call) noexcept : call_(call) {}

  // True: the document is written. False: the model is being loaded. Errors of check_route(), of the handler and of
  // Call::wait_for_load().
  bool write(const OnIoThread& handler, const RequestView& request, http::Response& response);
  // Call this after Call::noticed(). As write(), because the model may have been evicted meanwhile; also throws the
  // error of the load.
  bool resume(const OnIoThread& handler, const RequestView& request, http::Response& response);

 private:
  Call& call_;
};

}  // namespace sconce::server::api
