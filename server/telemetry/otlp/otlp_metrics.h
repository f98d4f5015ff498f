// OtlpMetrics: all metrics in OTLP's form, with cumulative sums and histograms. Used by one thread.
//
// A sum starts at the server's start, or at the last document before it appeared or decreased: a reloaded model counts
// from 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "server/telemetry/metrics.h"

namespace sconce::server::telemetry {

class OtlpMetrics {
 public:
  using Nanos = std::chrono::nanoseconds;  // since 1970
  explicit OtlpMetrics(Nanos begun) : last_(begun) {}

  // Elements of the JSON array "metrics", separated by commas. Rows without a value are omitted. fill: passes the
  // metrics to the sink.
  std::string document(const std::function<void(MetricSink&)>& fill, Nanos now);

 private:
  struct Series {
    double value;
    Nanos begun;
  };
  using AllSeries = std::unordered_map<std::string, Series>;
  class Sink;

  Nanos last_;  // time of the last document
  AllSeries series_;
};

}  // namespace sconce::server::telemetry
