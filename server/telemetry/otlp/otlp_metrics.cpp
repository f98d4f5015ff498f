#include "server/telemetry/otlp/otlp_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "server/telemetry/otlp/otlp_json.h"

namespace sconce::server::telemetry {
namespace {

// UCUM unit, from the suffix of the name.
std::string_view unit_of(std::string_view name) noexcept {
  constexpr std::string_view kTotal = "_total";
  if (name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_bytes", "By"},      {"_seconds", "s"},           {"_secs", "s"}, {"_us", "us"}, {"_usage", "W"},
      {"_power_limit", "W"}, {"_energy_consumption", "J"}};
  for (const auto& [end, unit] : kUnits)
    if (name.ends_with(end)) return unit;
  return "1";
}

// proto3's JSON has NaN and infinities as text.
std::string double_text(double number) {
  if (std::isnan(number)) return "\"NaN\"";
  if (std::isinf(number)) return number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{}", number);
}

// OpenTelemetry's own names, which Prometheus writes with underscores.
std::string_view otlp_name(std::string_view name) noexcept {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"rpc_server_call_duration_seconds", "rpc.server.call.duration"},
      {"rpc_system_name", "rpc.system.name"},
      {"rpc_method", "rpc.method"},
      {"rpc_response_status_code", "rpc.response.status_code"},
      {"error_type", "error.type"}};
  for (const auto& [written, own] : kNames)
    if (name == written) return own;
  return name;
}

// model="m",version="1" as a JSON array.
std::string attributes_of(std::string_view labels) {
  OrderedJson list = OrderedJson::array();
  while (!labels.empty()) {
    const size_t equals = labels.find("=\""), end = labels.find('"', equals + 2);
    list.push_back(otlp_text(otlp_name(labels.substr(0, equals)), labels.substr(equals + 2, end - equals - 2)));
    labels.remove_prefix(std::min(end + 2, labels.size()));
  }
  return dump(list);
}

}  // namespace

class OtlpMetrics::Sink final : public MetricSink {
 public:
  Sink(OtlpMetrics& memory, Nanos now) : memory_(memory), now_(now) {}

  void begin(const MetricRow& row) override {
    end();
    row_ = &row;
  }
  void integer(std::string_view labels, int64_t number) override {
    begin_point(labels, static_cast<double>(number));
    put(",\"asInt\":\"{}\"}}", number);
  }
  void real(std::string_view labels, double number) override {
    begin_point(labels, number);
    put(",\"asDouble\":{}}}", double_text(number));
  }
  void histogram(std::string_view labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                 double sum) override {
    uint64_t count = 0;
    for (const uint64_t one : counts) count += one;
    begin_point(labels, static_cast<double>(count));
    put(",\"count\":\"{}\",\"sum\":{},\"bucketCounts\":[", count, double_text(sum));
    for (size_t i = 0; i < counts.size(); ++i) put("{}\"{}\"", i == 0 ? "" : ",", counts[i]);
    put("],\"explicitBounds\":[");
    for (size_t i = 0; i < bounds.size(); ++i) put("{}{}", i == 0 ? "" : ",", double_text(bounds[i]));
    put("]}}");
  }
  // Ends the document.
  std::string take(AllSeries& series) {
    end();
    series = std::move(series_);
    return fmt::to_string(buffer_);
  }

 private:
  bool is_gauge() const noexcept { return row_->kind == "gauge"; }
  void begin_point(std::string_view labels, double value) {
    if (std::exchange(points_, true)) {
      put(",");
    } else {
      const std::string_view kind = is_gauge() ? "gauge" : row_->kind == "counter" ? "sum" : "histogram";
      put("{}{{\"name\":{},\"description\":{},\"unit\":\"{}\",\"{}\":{{", buffer_.size() == 0 ? "" : ",",
          dump(otlp_name(row_->name)), dump(row_->help), unit_of(row_->name), kind);
      if (!is_gauge()) put("\"aggregationTemporality\":2,");  // cumulative
      if (kind == "sum") put("\"isMonotonic\":true,");
      put("\"dataPoints\":[");
    }
    put("{{\"attributes\":{}", attributes_of(labels));
    if (!is_gauge()) put(",\"startTimeUnixNano\":\"{}\"", begun(labels, value).count());
    put(",\"timeUnixNano\":\"{}\"", now_.count());
  }
  Nanos begun(std::string_view labels, double value) {
    std::string key = std::string(row_->name).append(" ").append(labels);
    const auto known = memory_.series_.find(key);
    const bool goes_on = known != memory_.series_.end() && known->second.value <= value;
    const Nanos begun = goes_on ? known->second.begun : memory_.last_;
    series_.insert_or_assign(std::move(key), Series{value, begun});
    return begun;
  }
  void end() {
    if (std::exchange(points_, false)) put("]}}}}");
  }
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
  }

  OtlpMetrics& memory_;
  const Nanos now_;
  const MetricRow* row_ = nullptr;
  bool points_ = false;  // of row_
  fmt::memory_buffer buffer_;
  AllSeries series_;
};

std::string OtlpMetrics::document(const std::function<void(MetricSink&)>& fill, Nanos now) {
  Sink sink(*this, now);
  fill(sink);
  std::string text = sink.take(series_);
  last_ = now;
  return text;
}

}  // namespace sconce::server::telemetry
