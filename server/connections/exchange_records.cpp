// Exchange: what is recorded of a request: counts, the access log, traces.
#include <array>

#include "server/base/log.h"
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

void Exchange::log_access(size_t bytes) const {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count();
  const std::array<LogField, 3> fields{LogField{"status", std::to_string(response_.status), true},
                                       {"bytes", std::to_string(bytes), true},
                                       {"us", std::to_string(micros), true}};
  write_log(LogLevel::kInfo, access_line_, fields);
}

void Exchange::trace_inputs() {
  if (!traced_.tensors) return;
  inference_.trace_inputs(static_cast<size_t>(io_thread_.service().config.trace_tensor_elements), trace_tensors_);
}

void Exchange::trace_outputs() {
  if (!traced_.tensors) return;
  inference_.trace_outputs(static_cast<size_t>(io_thread_.service().config.trace_tensor_elements), trace_tensors_);
}

void Exchange::record_trace(Clock::time_point encoded) {
  const Inference::Timeline timeline = inference_.timeline();
  TraceRecord record;
  // A path may be as long as the whole head.
  constexpr size_t kLongest = 256;
  record.model = route_.model.substr(0, kLongest);
  record.version = route_.version.substr(0, kLongest);
  record.request_id = request_id_.text();
  record.method_and_path = "POST " + cached_path_.path.substr(0, kLongest);
  record.status = response_.status;
  record.parent = trace_parent_;
  record.levels = traced_;
  record.tensors = std::move(trace_tensors_);
  record.start = start_;
  record.decoded = timeline.decoded;
  record.run_done = timeline.run_done;
  record.queue = timeline.queue;
  record.compute = timeline.compute;
  record.encoded = encoded;
  record.sent = Clock::now();
  io_thread_.service().tracer.record(std::move(record));
}

}  // namespace sconce::server
