// Spans of requests and of weight updates in OTLP's form, by OpenTelemetry's semantic conventions.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/telemetry/trace_record.h"

namespace sconce::server::telemetry {

// One finished weight update.
struct UpdateRecord {
  struct Phase {
    const char* name;
    std::chrono::nanoseconds time;
  };
  std::string model, version, label;
  uint64_t id = 0;  // of the operation
  const char* state = "done";
  std::string error;  // if it failed or was cancelled
  uint64_t bytes = 0, weight_version = 0;
  TraceRecord::Clock::time_point start, end;
  std::vector<Phase> phases;  // consecutive
  std::optional<TraceParent> parent;
};

// Elements of a JSON array, separated by commas. epoch: the steady clock's zero, since 1970.
std::string otlp_spans(const TraceRecord& record, std::chrono::nanoseconds epoch);
std::string otlp_spans(const UpdateRecord& record, std::chrono::nanoseconds epoch);
// The number of spans in otlp_spans().
size_t count_spans(const TraceRecord& record);
size_t count_spans(const UpdateRecord& record) noexcept;

}  // namespace sconce::server::telemetry
