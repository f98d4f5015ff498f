#include "server/telemetry/otlp/otlp_metrics.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "server/support/json_document.h"

namespace sconce::server::telemetry {

using namespace std::chrono_literals;

namespace {

constexpr MetricRow kCounter{"x_seconds_total", "counter", "model", "A \"sum\""};
constexpr MetricRow kGauge{"y_bytes", "gauge", "", "A gauge"};
constexpr MetricRow kHistogram{"z", "histogram", "model", "A histogram"};

OrderedJson document_of(OtlpMetrics& metrics, OtlpMetrics::Nanos now, const std::function<void(MetricSink&)>& fill) {
  return parse_document("[" + metrics.document(fill, now) + "]");
}

std::string begun(OtlpMetrics& metrics, OtlpMetrics::Nanos now, int64_t value) {
  const OrderedJson list = document_of(metrics, now, [&](MetricSink& sink) {
    sink.begin(kCounter);
    if (value >= 0) sink.integer("model=\"m\"", value);
  });
  return list.empty() ? "" : list[0]["sum"]["dataPoints"][0]["startTimeUnixNano"];
}

}  // namespace

TEST_CASE("otlp metrics: sums, gauges and histograms") {
  OtlpMetrics metrics(1s);
  const OrderedJson list = document_of(metrics, 2s, [](MetricSink& sink) {
    sink.begin(kCounter);
    sink.real("model=\"m\",version=\"1\"", 0.5);
    sink.real("model=\"n\",version=\"1\"", 2);
    sink.begin({"nothing", "gauge", "", ""});
    sink.begin(kGauge);
    sink.integer("", -3);
    sink.begin(kHistogram);
    sink.histogram("model=\"m\"", std::array{0.1, 1.0}, std::array<uint64_t, 3>{1, 0, 2}, 7.5);
  });
  REQUIRE(list.size() == 3);
  CHECK(list[0] == parse_document(R"({"name":"x_seconds_total","description":"A \"sum\"","unit":"s","sum":{
    "aggregationTemporality":2,"isMonotonic":true,"dataPoints":[
      {"attributes":[{"key":"model","value":{"stringValue":"m"}},{"key":"version","value":{"stringValue":"1"}}],
       "startTimeUnixNano":"1000000000","timeUnixNano":"2000000000","asDouble":0.5},
      {"attributes":[{"key":"model","value":{"stringValue":"n"}},{"key":"version","value":{"stringValue":"1"}}],
       "startTimeUnixNano":"1000000000","timeUnixNano":"2000000000","asDouble":2}]}})"));
  CHECK(list[1] == parse_document(R"({"name":"y_bytes","description":"A gauge","unit":"By","gauge":{"dataPoints":[
      {"attributes":[],"timeUnixNano":"2000000000","asInt":"-3"}]}})"));
  CHECK(list[2] == parse_document(R"({"name":"z","description":"A histogram","unit":"1","histogram":{
    "aggregationTemporality":2,"dataPoints":[{"attributes":[{"key":"model","value":{"stringValue":"m"}}],
      "startTimeUnixNano":"1000000000","timeUnixNano":"2000000000","count":"3","sum":7.5,"bucketCounts":["1","0","2"],
      "explicitBounds":[0.1,1]}]}})"));
}

TEST_CASE("otlp metrics: a sum that goes back, or comes later, began after the document before it") {
  OtlpMetrics metrics(1s);
  CHECK(begun(metrics, 2s, 5) == "1000000000");
  CHECK(begun(metrics, 3s, 5) == "1000000000");
  CHECK(begun(metrics, 4s, 9) == "1000000000");
  CHECK(begun(metrics, 5s, 1) == "4000000000");
  CHECK(begun(metrics, 6s, 2) == "4000000000");
  CHECK(begun(metrics, 7s, -1).empty());
  CHECK(begun(metrics, 8s, 2) == "7000000000");
}

TEST_CASE("otlp metrics: numbers that JSON does not have are text") {
  OtlpMetrics metrics(1s);
  const OrderedJson list = document_of(metrics, 2s, [](MetricSink& sink) {
    sink.begin(kGauge);
    for (const double number : std::array<double, 3>{NAN, INFINITY, -INFINITY}) sink.real("", number);
  });
  const OrderedJson& points = list[0]["gauge"]["dataPoints"];
  CHECK(points[0]["asDouble"] == "NaN");
  CHECK(points[1]["asDouble"] == "Infinity");
  CHECK(points[2]["asDouble"] == "-Infinity");
}

}  // namespace sconce::server::telemetry
