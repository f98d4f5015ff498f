// The request that an HttpCall passes to an admin handler, and the handler's answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/http/upload.h"
#include "server/support/request_id.h"

namespace sconce::server::rollout {

struct AdminRequest {
  RequestId id;
  std::string peer;                         // the client's address
  std::string model, version, number, set;  // as in RouteMatch
  std::string query;
  // Header fields; empty: absent.
  std::string content_type, content_digest, signature, authorization, user_agent, traceparent;
  bool has_token = false;  // the server checks tokens, and the request has a valid token
  std::string body;        // empty for uploads

  bool head_only = false;     // HEAD
  http::UploadSource source;  // the connection, for handlers that read the body or send the answer
  // An upload, whose body the handler reads from the connection.
  bool upload = false;
  bool expects_continue = false;
};

struct AdminAnswer {
  int status = 200;
  std::string text;
  bool body_left = false;  // of an upload: its body was not read to the end
  uint64_t received = 0;   // bytes of an upload
  uint64_t sent = 0;       // bytes that the handler sent itself as the answer; then the connection ends
};

// Called once with the answer, on another thread than the connection's. Must not throw.
using AdminDone = std::function<void(AdminAnswer)>;

}  // namespace sconce::server::rollout
