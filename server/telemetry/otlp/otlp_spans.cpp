#include "server/telemetry/otlp/otlp_spans.h"

#include <algorithm>

#include "server/support/request_id.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/otlp/otlp_json.h"

namespace sconce::server::telemetry {
namespace {

using Clock = TraceRecord::Clock;

enum SpanKind : int8_t { kInternal = 1, kServer = 2 };
constexpr int kErrorStatus = 2;
// W3C's span flags: sampled; it is known whether the parent is remote; the parent is remote.
constexpr int kSampled = 1, kParentKnown = 0x100, kParentRemote = 0x200;

struct Place {
  const std::string& trace;
  std::string parent;  // empty: none
  bool remote;
  std::chrono::nanoseconds epoch;
};

OrderedJson span_of(const Place& place, const std::string& id, std::string_view name, SpanKind kind,
                    Clock::time_point start, Clock::time_point end) {
  const auto nanos = [&](Clock::time_point t) { return otlp_nanos(t.time_since_epoch() + place.epoch); };
  return {{"traceId", place.trace},
          {"spanId", id},
          {"parentSpanId", place.parent},
          {"flags", kSampled | kParentKnown | (place.remote ? kParentRemote : 0)},
          {"name", name},
          {"kind", kind},
          {"startTimeUnixNano", nanos(start)},
          {"endTimeUnixNano", nanos(std::max(start, end))}};
}

Place place_of_root(const std::string& trace, const std::optional<TraceParent>& parent,
                    std::chrono::nanoseconds epoch) {
  return {trace, parent ? std::string(parent->span_id.data(), parent->span_id.size()) : "", parent.has_value(), epoch};
}

// The attributes of a request, by the conventions for HTTP or RPC.
void describe_request(const TraceRecord& record, OrderedJson& span) {
  OrderedJson attributes = OrderedJson::array();
  bool failed = false;
  if (record.grpc_code) {
    const std::string method = std::string(kGrpcService).append("/").append(record.route);
    const auto code = static_cast<size_t>(*record.grpc_code);
    span["name"] = method;
    attributes = {otlp_text("rpc.system.name", "grpc"), otlp_text("rpc.method", method),
                  otlp_text("rpc.response.status_code", grpc_code_name(code))};
    failed = is_grpc_server_error(code);
    if (failed) attributes.push_back(otlp_text("error.type", grpc_code_name(code)));
  } else {
    const std::string_view whole = record.method_and_path;
    const size_t blank = std::min(whole.find(' '), whole.size());
    const std::string_view method = whole.substr(0, blank);
    span["name"] = std::string(method).append(" ").append(record.route);
    attributes = {otlp_text("http.request.method", method), otlp_text("http.route", record.route),
                  otlp_text("url.path", whole.substr(std::min(blank + 1, whole.size()))),
                  otlp_text("url.scheme", record.scheme), otlp_integer("http.response.status_code", record.status)};
    failed = record.status >= 500;
    if (failed) attributes.push_back(otlp_text("error.type", std::to_string(record.status)));
  }
  attributes.push_back(otlp_text("sconce.model.name", record.model));
  attributes.push_back(otlp_text("sconce.model.version", record.version));
  attributes.push_back(otlp_text("sconce.request_id", record.request_id));
  span["attributes"] = std::move(attributes);
  span["status"] = failed ? OrderedJson{{"code", kErrorStatus}} : OrderedJson::object();
}

OrderedJson event_of(const TraceRecord& record, const codecs::TraceTensor& tensor, std::chrono::nanoseconds epoch) {
  OrderedJson attributes =
      OrderedJson::array({otlp_text("tensor.name", tensor.name), otlp_text("tensor.dtype", tensor.datatype),
                          otlp_text("tensor.shape", tensor.shape), otlp_text("tensor.data", tensor.data)});
  if (tensor.truncated) attributes.push_back(otlp_flag("tensor.truncated", true));
  return {{"timeUnixNano", otlp_nanos(time_of(record, tensor).time_since_epoch() + epoch)},
          {"name", tensor.activity},
          {"attributes", std::move(attributes)}};
}

}  // namespace

std::string otlp_spans(const TraceRecord& record, std::chrono::nanoseconds epoch) {
  const std::vector<TraceSpan> spans = spans_of(record);
  OrderedJson root = span_of(place_of_root(record.trace_id, record.parent, epoch), record.span_id, "", kServer,
                             spans[0].start, spans[0].end);
  describe_request(record, root);
  if (!record.tensors.empty()) root["events"] = OrderedJson::array();
  for (const codecs::TraceTensor& tensor : record.tensors) root["events"].push_back(event_of(record, tensor, epoch));
  std::string text = dump(root);
  const Place inner{record.trace_id, record.span_id, false, epoch};
  for (size_t i = 1; i < spans.size(); ++i) {
    OrderedJson span = span_of(inner, random_hex(16), spans[i].name, kInternal, spans[i].start, spans[i].end);
    if (!spans[i].model.empty())
      span["attributes"] = OrderedJson::array({otlp_text("sconce.model.name", spans[i].model)});
    text.append(",").append(dump(span));
  }
  return text;
}

std::string otlp_spans(const UpdateRecord& record, std::chrono::nanoseconds epoch) {
  const std::string trace =
      record.parent ? std::string(record.parent->trace_id.data(), record.parent->trace_id.size()) : random_hex(32);
  const std::string id = random_hex(16);
  OrderedJson root =
      span_of(place_of_root(trace, record.parent, epoch), id, "weights update", kInternal, record.start, record.end);
  root["attributes"] = OrderedJson::array(
      {otlp_text("sconce.model.name", record.model), otlp_text("sconce.model.version", record.version),
       otlp_integer("sconce.operation.id", static_cast<int64_t>(record.id)),
       otlp_text("sconce.weights.state", record.state), otlp_text("sconce.weights.label", record.label),
       otlp_integer("sconce.weights.bytes", static_cast<int64_t>(record.bytes))});
  if (record.weight_version != 0) {
    for (const char* name : {"sconce.weights.version", "sconce.weights.generation"})
      root["attributes"].push_back(otlp_integer(name, static_cast<int64_t>(record.weight_version)));
  }
  root["status"] =
      record.error.empty() ? OrderedJson::object() : OrderedJson{{"code", kErrorStatus}, {"message", record.error}};
  std::string text = dump(root);
  const Place inner{trace, id, false, epoch};
  Clock::time_point begin = record.start;
  for (const UpdateRecord::Phase& phase : record.phases) {
    if (phase.time.count() <= 0) continue;
    text.append(",").append(dump(span_of(inner, random_hex(16), phase.name, kInternal, begin, begin + phase.time)));
    begin += phase.time;
  }
  return text;
}

size_t count_spans(const TraceRecord& record) { return spans_of(record).size(); }

size_t count_spans(const UpdateRecord& record) noexcept {
  return 1 +
         static_cast<size_t>(std::count_if(record.phases.begin(), record.phases.end(),
                                           [](const UpdateRecord::Phase& phase) { return phase.time.count() > 0; }));
}

}  // namespace sconce::server::telemetry
