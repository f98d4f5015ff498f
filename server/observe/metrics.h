// Metrics in Prometheus' text format (0.0.4), and the HTTP side's counters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/models/repository.h"
#include "server/observe/update_counters.h"

namespace sconce::server {

// Counters that one I/O thread writes.
struct alignas(64) ConnectionCounters {
  using Counter = std::atomic<uint64_t>;
  // Every status; others count as the last one, 0.
  static constexpr std::array<int, 25> kStatuses = {200, 202, 304, 400, 401, 403, 404, 405, 408, 409, 411, 413, 415,
                                                    417, 429, 431, 499, 500, 501, 503, 504, 505, 507, 412, 0};
  static constexpr size_t kMostRoutes = 104;
  // Counts answers without a route.
  static constexpr size_t kNoRoute = kMostRoutes;

  Counter accepted{0}, closed{0}, received{0}, sent{0};
  Counter bodies_in{0}, bodies_out{0};  // bytes of bodies: of requests that began, and of requests that ended
  std::array<std::array<Counter, kStatuses.size()>, kMostRoutes + 1> responses{};

  static void add(Counter& counter, uint64_t value) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  // route: its index in the table of routes, or kNoRoute.
  void response(size_t route, int status) noexcept {
    size_t i = 0;
    while (i + 1 < kStatuses.size() && kStatuses[i] != status) ++i;
    add(responses[route][i], 1);
  }
};

// Calls of the gRPC service, by method and status code. Any thread counts.
struct CallCounters {
  static constexpr size_t kMostMethods = 24, kCodes = 17;
  std::array<std::array<std::atomic<uint64_t>, kCodes>, kMostMethods> calls{};
  std::atomic<int64_t> connections{0};

  void add(size_t method, size_t code) noexcept {
    calls[method][code < kCodes ? code : 2].fetch_add(1, std::memory_order_relaxed);
  }
};

struct MetricRow {
  std::string_view name, kind, labels, help;
};
std::span<const MetricRow> metric_rows() noexcept;

int64_t resident_bytes();  // of this process

// Counters besides those of connections and models.
struct ServerTotals {
  double start_time = 0;  // seconds since 1970
  uint64_t lost_traces = 0, failed_traces = 0, audit_failures = 0;
  uint64_t request_memory = 0, request_memory_limit = 0;
  uint64_t lost_lines = 0, held_lines = 0;  // of the log
  const CallCounters* calls = nullptr;      // null: there is no gRPC
  std::span<const std::string_view> methods;
};
// routes: names by index; several routes may have the same name.
std::string metrics_text(const Catalog& catalog, const std::vector<ConnectionCounters>& connections,
                         std::span<const std::string_view> routes, const UpdateCounters& updates,
                         const ServerTotals& totals);

}  // namespace sconce::server
