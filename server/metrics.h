// Metrics in Prometheus' text format (0.0.4), and the counters of the HTTP side.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/operations.h"
#include "server/repository.h"

namespace sconce {

// What one io thread counts; it alone writes.
struct alignas(64) ConnectionCounters {
  using Counter = std::atomic<uint64_t>;
  static constexpr int kLowest = 200, kHighest = 599;

  Counter accepted{0}, closed{0}, received{0}, sent{0};
  std::array<Counter, kHighest - kLowest + 1> responses{};

  static void add(Counter& counter, uint64_t value) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  void response(int status) noexcept {
    if (status >= kLowest && status <= kHighest) add(responses[static_cast<size_t>(status - kLowest)], 1);
  }
};

struct MetricRow {
  std::string_view name, kind, labels, help;
};
std::span<const MetricRow> metric_rows() noexcept;

// start_time: seconds since 1970.
std::string metrics_text(const Catalog& catalog, const std::vector<ConnectionCounters>& connections,
                         const UpdateCounters& updates, double start_time);

}  // namespace sconce
