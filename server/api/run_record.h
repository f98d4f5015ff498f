// Records of a request in every protocol: its line in the access log, and its trace.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "server/codecs/inference.h"
#include "server/support/failure.h"
#include "server/support/log_limit.h"
#include "server/telemetry/traces/trace.h"

namespace sconce::server::api {

// Method and path, or the client's text in their place, for a log line.
std::string shown_in_log(std::string_view text);
// Logs a request that failed because of the server.
void log_failure(LogLimit& limit, const Failure& failure);
// what: "POST /v2/models/m/infer", or a gRPC method. status: the protocol's own code.
void log_access(std::string_view what, int status, size_t bytes, std::chrono::nanoseconds time);

// Records the trace of an inference whose answer was just sent. record: everything except the times and tensors of the
// run.
void record_run(telemetry::Tracer& tracer, telemetry::TraceRecord record, const codecs::Inference::Timeline& run,
                telemetry::TraceRecord::Clock::time_point encoded);

}  // namespace sconce::server::api
