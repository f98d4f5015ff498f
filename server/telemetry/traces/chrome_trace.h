// Trace records in Chrome's trace format.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/telemetry/trace_record.h"

namespace sconce::server::telemetry {

// first: the record is the first of its file. epoch: the steady clock's zero, since 1970. row: the record's "tid".
void append_chrome(std::string& text, const TraceRecord& record, std::chrono::nanoseconds epoch, bool first,
                   uint64_t row);

}  // namespace sconce::server::telemetry
