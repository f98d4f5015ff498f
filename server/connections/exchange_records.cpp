// Exchange: what is recorded of a request: counts and traces.
#include <utility>

#include "server/answers/routes.h"
#include "server/answers/run_record.h"
#include "server/connections/exchange.h"

namespace sconce::server {

// Sets the bytes of the request's body from here on; 0: the body is freed.
void Exchange::count_body(size_t bytes) noexcept {
  if (bytes == counted_) return;
  ConnectionCounters::add(io_thread_.counters().bodies_in, bytes);
  ConnectionCounters::add(io_thread_.counters().bodies_out, counted_);
  counted_ = bytes;
}

void Exchange::count_answer() noexcept {
  const bool found = routed_ && route_.result == RouteMatch::Result::kFound;
  io_thread_.counters().response(found ? route_.route : ConnectionCounters::kNoRoute, response_.status);
}

void Exchange::trace_inputs() {
  if (traced_.timestamps) inference_.trace_steps();
  if (!traced_.tensors) return;
  inference_.trace_inputs(static_cast<size_t>(io_thread_.service().config.trace_tensor_elements), trace_tensors_);
}

void Exchange::trace_outputs() {
  if (!traced_.tensors) return;
  inference_.trace_outputs(static_cast<size_t>(io_thread_.service().config.trace_tensor_elements), trace_tensors_);
}

void Exchange::record_trace(Clock::time_point encoded) {
  TraceRecord record;
  record.model = route_.model;
  record.version = route_.version;
  record.request_id = request_id_.text();
  record.method_and_path = "POST " + cached_path_.path;
  record.route = kRouteNames[route_.route];
  const ServerConfig& config = io_thread_.service().config;
  record.scheme = (listener_ == kAdmin ? config.admin_tls : config.http_tls) == TlsMode::kOff ? "http" : "https";
  record.status = response_.status;
  record.parent = trace_parent_;
  record.levels = traced_;
  record.tensors = std::move(trace_tensors_);
  record.start = start_;
  record_run(io_thread_.service().tracer, std::move(record), inference_.timeline(), encoded);
}

}  // namespace sconce::server
