// OtlpExporter: pushes spans and metrics to a collector, with OTLP over HTTP in JSON. Thread-safe.
//
// Its own thread resolves names, connects, sends and waits. Adding spans only takes a lock. If the collector is slow or
// unreachable, spans are queued up to a limit; beyond the limit the newest spans are dropped and counted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/support/config.h"
#include "server/telemetry/otlp/otlp_endpoint.h"
#include "server/telemetry/otlp/otlp_metrics.h"
#include "server/telemetry/otlp/otlp_spans.h"
#include "server/telemetry/trace_record.h"

namespace sconce::server::telemetry {

class OtlpExporter {
 public:
  static bool is_on(const ServerConfig& config) noexcept { return !config.otlp.empty() && config.otlp != "off"; }
  // Null if the setting otlp is off. kInvalidArgument, kIo.
  static std::unique_ptr<OtlpExporter> of(const ServerConfig& config);
  explicit OtlpExporter(const ServerConfig& config);
  OtlpExporter(const OtlpExporter&) = delete;
  ~OtlpExporter() { stop(); }

  // metrics: passes all metrics to the sink; called by the object's thread, until stop() has returned.
  void start(std::function<void(MetricSink&)> metrics);
  // Pushes the queued data once, for at most five seconds.
  void stop() noexcept;

  void add(std::shared_ptr<const TraceRecord> record);
  void add(const UpdateRecord& record);

  const OtlpCounters& counters() const noexcept { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Item {
    std::shared_ptr<const TraceRecord> record;  // null: `text` has the spans
    std::string text;
    size_t spans = 0, bytes = 0;
  };
  // A body to push or to retry.
  struct Outgoing {
    OtlpCounters::Signal signal;
    const char* path;
    const char* what;
    std::string body{};
    uint64_t spans = 0;
    int tries = 0;
    Clock::time_point next{};
    // For the log.
    bool failing = false;
    Clock::time_point note_again{};
  };
  void enqueue(Item item);
  void run() noexcept;
  // Waits until there is work; takes a batch if the last one was pushed.
  std::vector<Item> wait(bool& stopping);
  Clock::time_point due() const SCONCE_REQUIRES(mutex_);
  void make_body(const std::vector<Item>& items);
  void make_metrics();
  void push(Outgoing& outgoing, bool last);
  void note(Outgoing& outgoing, const OtlpPush& result);
  void check_end();

  const bool traces_, with_metrics_;
  const std::chrono::microseconds delay_, interval_;
  const std::string resource_;
  const std::chrono::nanoseconds epoch_ = steady_epoch();
  OtlpEndpoint endpoint_;
  OtlpCounters counters_;

  mutable Mutex mutex_;
  ConditionVariable wake_;
  std::vector<Item> waiting_ SCONCE_GUARDED_BY(mutex_);
  size_t waiting_spans_ SCONCE_GUARDED_BY(mutex_) = 0, waiting_bytes_ SCONCE_GUARDED_BY(mutex_) = 0;
  Clock::time_point first_ SCONCE_GUARDED_BY(mutex_){};  // arrival of the oldest item in waiting_
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  Clock::time_point end_ SCONCE_GUARDED_BY(mutex_){};  // deadline of the last pushes, once it is stopping

  // Used only by the thread:
  Outgoing spans_out_{OtlpCounters::kTraces, "/v1/traces", "spans"};
  Outgoing metrics_out_{OtlpCounters::kMetrics, "/v1/metrics", "metrics"};
  Clock::time_point metrics_due_{};
  std::function<void(MetricSink&)> metrics_;
  OtlpMetrics metrics_memory_{epoch_ + Clock::now().time_since_epoch()};
  std::thread thread_;
};

}  // namespace sconce::server::telemetry
