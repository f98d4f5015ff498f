#include "server/api/run_record.h"

#include <array>
#include <string>
#include <utility>

#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {

std::string shown_in_log(std::string_view text) {
  return text.size() <= kExcerptBytes ? printable(text) : printable(text.substr(0, kExcerptBytes - 3)) + "...";
}

void log_failure(LogLimit& limit, const Failure& failure) {
  if (failure.status >= 500) log_warn(limit, "request failed with {}: {}", failure.status, printable(failure.message));
}

void log_access(std::string_view what, int status, size_t bytes, std::chrono::nanoseconds time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  const std::array<LogField, 3> fields{LogField{"status", std::to_string(status), true},
                                       {"bytes", std::to_string(bytes), true},
                                       {"us", std::to_string(micros), true}};
  write_log(LogLevel::kInfo, what, fields);
}

void record_run(telemetry::Tracer& tracer, telemetry::TraceRecord record, const codecs::Inference::Timeline& run,
                telemetry::TraceRecord::Clock::time_point encoded) {
  if (run.version >= 0) record.version = std::to_string(run.version);
  // A client's text may be as long as a request header.
  constexpr size_t kLongest = 256;
  for (std::string* text : {&record.model, &record.version, &record.method_and_path}) {
    if (text->size() > kLongest) text->resize(kLongest);
  }
  record.decoded = run.decoded;
  record.run_done = run.run_done;
  record.queue = run.queue;
  record.gather = run.gather;
  record.compute = run.compute;
  for (const scheduling::StepTime& step : run.steps)
    if (step.begun != telemetry::TraceRecord::Clock::time_point{})
      record.steps.push_back({*step.model, step.begun, step.ended});
  record.encoded = encoded;
  record.sent = telemetry::TraceRecord::Clock::now();
  tracer.record(std::move(record));
}

}  // namespace sconce::server::api
