// Converts gRPC messages to the documents of HTTP's routes, and back: the same JSON except for the names below. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

#include "package_format/text/json_value.h"
#include "server/api/methods.h"
#include "server/http/router.h"

namespace sconce::server::rpc {

// A message as a request to its route.
struct RouteRequest {
  bool changes = false;  // settings: POST instead of GET
  std::string model, version, region;
  std::string body;
};

// kInvalidArgument; kUnsupported for a repository name, because this server's repositories have no names.
RouteRequest route_request(api::GrpcMethod method, std::string_view message);
// The answer's message as JSON.
std::string answer_message(api::GrpcMethod method, std::string_view document);

}  // namespace sconce::server::rpc
