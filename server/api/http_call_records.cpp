// HttpCall: records of a request: counters and traces.
#include <utility>

#include "server/api/http_call.h"
#include "server/api/routes.h"
#include "server/api/run_record.h"

namespace sconce::server::api {

// Sets the bytes of the request's body from here on; 0: the body is freed.
void HttpCall::count_body(size_t bytes) noexcept {
  if (bytes == counted_) return;
  http::ConnectionCounters::add(api_.counters().bodies_in, bytes);
  http::ConnectionCounters::add(api_.counters().bodies_out, counted_);
  counted_ = bytes;
}

void HttpCall::count_answer() noexcept {
  const bool found = routed_ && route_.result == http::RouteMatch::Result::kFound;
  api_.counters().response(found ? route_.route : http::ConnectionCounters::kNoRoute, response_.status);
}

void HttpCall::record_trace(Clock::time_point encoded) {
  telemetry::TraceRecord record;
  record.method_and_path = "POST " + cached_path_.path;
  record.route = kRouteNames[route_.route];
  const ServerConfig& config = api_.admission().config;
  record.scheme = (listener_ == http::kAdmin ? config.admin_tls : config.http_tls) == TlsMode::kOff ? "http" : "https";
  record.status = response_.status;
  call_.record(std::move(record), request_id_, encoded);
}

}  // namespace sconce::server::api
