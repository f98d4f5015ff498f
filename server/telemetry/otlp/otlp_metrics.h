// OtlpMetrics: all metrics as OTLP has them, with cumulative sums and histograms. Used by one thread.
//
// A sum begins when the server does, or at the last document before it appeared or went back: a model that was loaded
// again counts from 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "server/telemetry/metrics.h"

namespace sconce::server {

class OtlpMetrics {
 public:
  using Nanos = std::chrono::nanoseconds;  // since 1970
  explicit OtlpMetrics(Nanos begun) : last_(begun) {}

  // Elements of the JSON array "metrics", separated by commas. Rows without a value are left out. fill: gives the sink
  // the metrics.
  std::string document(const std::function<void(MetricSink&)>& fill, Nanos now);

 private:
  struct Series {
    double value;
    Nanos begun;
  };
  using AllSeries = std::unordered_map<std::string, Series>;
  class Sink;

  Nanos last_;  // the time of the last document
  AllSeries series_;
};

}  // namespace sconce::server
