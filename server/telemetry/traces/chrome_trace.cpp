#include "server/telemetry/traces/chrome_trace.h"

#include <unistd.h>

#include <utility>

#include "server/support/json_document.h"

namespace sconce::server::telemetry {

void append_chrome(std::string& text, const TraceRecord& record, std::chrono::nanoseconds epoch, bool first,
                   uint64_t row) {
  const auto micros = [&](TraceRecord::Clock::time_point t) {
    return static_cast<double>((t.time_since_epoch() + epoch).count()) / 1000;
  };
  const auto put = [&](const OrderedJson& event) {
    text += std::exchange(first, false) ? "[\n" : ",\n";
    text += dump(event);
  };
  for (const TraceSpan& span : spans_of(record)) {
    OrderedJson event = {{"name", span.name},
                         {"cat", record.model},
                         {"ph", "X"},
                         {"ts", micros(span.start)},
                         {"dur", static_cast<double>((span.end - span.start).count()) / 1000},
                         {"pid", getpid()},
                         {"tid", row}};
    if (span.name == std::string_view("request")) {
      event["args"] = {{"id", record.request_id},
                       {"request", record.method_and_path},
                       {"model", record.model},
                       {"version", record.version},
                       {"status", record.status}};
      if (record.parent) {
        event["args"]["trace_id"] = record.trace_id;
        event["args"]["parent_span_id"] = std::string(record.parent->span_id.data(), 16);
      }
    }
    if (!span.model.empty()) event["args"] = {{"model", span.model}};
    put(event);
  }
  for (const codecs::TraceTensor& tensor : record.tensors) {
    OrderedJson described = {
        {"name", tensor.name}, {"data", tensor.data}, {"shape", tensor.shape}, {"dtype", tensor.datatype}};
    if (tensor.truncated) described["truncated"] = true;
    put({{"name", tensor.activity},
         {"cat", record.model},
         {"ph", "i"},
         {"s", "t"},
         {"ts", micros(time_of(record, tensor))},
         {"pid", getpid()},
         {"tid", row},
         {"args", {{"id", record.request_id}, {"tensor", std::move(described)}}}});
  }
}

}  // namespace sconce::server::telemetry
