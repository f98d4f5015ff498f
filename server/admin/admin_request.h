// What a session hands to the admin side, and what it gets back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/base/request_id.h"
#include "server/http/upload.h"

namespace sconce::server {

struct AdminRequest {
  RequestId id;
  std::string peer;                    // the client's address
  std::string model, version, number;  // as in RouteMatch
  std::string query;
  std::string content_type, content_digest;  // fields; empty: absent
  std::string body;                          // of all but an upload

  // An upload: its body is read from the connection.
  bool upload = false;
  UploadSource source;
  bool expects_continue = false;
};

struct AdminAnswer {
  int status = 200;
  std::string text;
  bool body_left = false;  // of an upload: not read to its end
  uint64_t received = 0;   // bytes of an upload
};

// Called once, on another thread than the session's, with the answer. Must not throw.
using AdminDone = std::function<void(AdminAnswer)>;

}  // namespace sconce::server
