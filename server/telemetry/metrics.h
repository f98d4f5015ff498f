// Metrics in Prometheus' text format (0.0.4).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/connection_counters.h"
#include "server/registry/on_demand.h"
#include "server/registry/remote/remote_counters.h"
#include "server/registry/repository.h"
#include "server/telemetry/gpu_metrics.h"
#include "server/telemetry/update_counters.h"

namespace sconce::server::telemetry {

// Counters of the gRPC service: calls by method and status code, and connections. Any thread counts.
struct CallCounters {
  static constexpr size_t kMaxMethods = 24, kCodes = 17, kUnknownCode = 2;
  // Upper bounds of the histogram's buckets in seconds, from OpenTelemetry's conventions; the last bucket has no bound.
  static constexpr std::array<double, 14> kSeconds = {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25,
                                                      0.5,   0.75, 1,     2.5,  5,     7.5, 10};
  struct Row {
    std::array<std::atomic<uint64_t>, kSeconds.size() + 1> durations{};
    std::atomic<uint64_t> nanoseconds{0};
  };
  // Why the server closed a connection.
  enum Closed : size_t { kEmptyStreams, kBytes, kStalled, kCalls, kRoom, kNone };
  static constexpr std::array<std::string_view, kNone> kReasons = {"streams", "bytes", "stalled", "calls", "room"};

  std::array<std::array<Row, kCodes>, kMaxMethods> calls{};
  std::array<std::atomic<uint64_t>, kNone> closed{};
  std::atomic<int64_t> connections{0};

  void add(size_t method, size_t code, std::chrono::nanoseconds time) noexcept {
    Row& row = calls[method][code < kCodes ? code : kUnknownCode];
    const double seconds = std::chrono::duration<double>(time).count();
    const auto bucket = std::lower_bound(kSeconds.begin(), kSeconds.end(), seconds) - kSeconds.begin();
    row.durations[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    row.nanoseconds.fetch_add(static_cast<uint64_t>(time.count()), std::memory_order_relaxed);
  }
};
// "OK", "CANCELLED"; for an unknown number, "UNKNOWN".
std::string_view grpc_code_name(size_t code) noexcept;
// Whether the code is the server's fault and not the client's, by OpenTelemetry's conventions.
bool is_grpc_server_error(size_t code) noexcept;
constexpr std::string_view kGrpcService = "inference.GRPCInferenceService";

// Results of spans and of pushes to the collector. Any thread counts.
struct OtlpCounters {
  enum Spans : size_t { kSent, kDropped, kRejected, kLost };
  // kDropped: the queue was full. kRejected: by the collector in a partial success. kLost: the collector did not accept
  // them.
  static constexpr std::array<std::string_view, 4> kSpanResults = {"sent", "dropped", "rejected", "lost"};
  enum Signal : size_t { kTraces, kMetrics };
  static constexpr std::array<std::string_view, 2> kSignals = {"traces", "metrics"};
  enum Pushes : size_t { kTaken, kAgain, kRefused };
  // kAgain: will be retried. kRefused: will not be retried.
  static constexpr std::array<std::string_view, 3> kPushResults = {"taken", "again", "refused"};

  std::array<std::atomic<uint64_t>, kSpanResults.size()> spans{};
  std::array<std::array<std::atomic<uint64_t>, kPushResults.size()>, kSignals.size()> pushes{};

  void count(Spans result, uint64_t more) noexcept { spans[result].fetch_add(more, std::memory_order_relaxed); }
  void count(Signal signal, Pushes result) noexcept { pushes[signal][result].fetch_add(1, std::memory_order_relaxed); }
};

struct MetricRow {
  std::string_view name, kind, labels, help;
};
std::span<const MetricRow> metric_rows() noexcept;

int64_t resident_bytes();  // of this process

// Counters other than those of connections and models.
struct ServerTotals {
  double start_time = 0;  // seconds since 1970
  uint64_t lost_traces = 0, failed_traces = 0, audit_failures = 0;
  uint64_t request_memory = 0, request_memory_limit = 0;
  uint64_t lost_lines = 0, held_lines = 0;        // of the log
  const CallCounters* calls = nullptr;            // null: no gRPC
  const OtlpCounters* otlp = nullptr;             // null: no collector
  const registry::OnDemand* on_demand = nullptr;  // null: no model is loaded on demand
  std::span<const std::string_view> methods;
  const registry::RemoteCounters* remote = nullptr;  // null: no remote sources
};

// One metrics reader's last view of this host.
struct HostLook {
  uint64_t busy = 0, total = 0;  // time of all processors
  GpuReader gpus{};
};

// Receives all metrics, row by row. labels: in Prometheus' form, such as model="m",version="1"; no value has a quote.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void begin(const MetricRow& row) = 0;
  virtual void integer(std::string_view labels, int64_t number) = 0;
  virtual void real(std::string_view labels, double number) = 0;
  // counts: of each bucket, not cumulative; the last bucket is above all bounds.
  virtual void histogram(std::string_view labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                         double sum) = 0;
};
// routes: names by index; several routes may have the same name.
void write_metrics(MetricSink& sink, const registry::Catalog& catalog,
                   const std::vector<http::ConnectionCounters>& connections, std::span<const std::string_view> routes,
                   const UpdateCounters& updates, const ServerTotals& totals, HostLook& look);
std::string metrics_text(const registry::Catalog& catalog, const std::vector<http::ConnectionCounters>& connections,
                         std::span<const std::string_view> routes, const UpdateCounters& updates,
                         const ServerTotals& totals, HostLook& look);

}  // namespace sconce::server::telemetry
