// ConnectionCounters: the counters of one I/O thread's connections. Only that thread writes; any thread may read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sconce::server::http {

struct alignas(64) ConnectionCounters {
  using Counter = std::atomic<uint64_t>;
  // The counted statuses. Any other status is counted as the last one, 0.
  static constexpr std::array<int, 25> kStatuses = {200, 202, 304, 400, 401, 403, 404, 405, 408, 409, 411, 413, 415,
                                                    417, 429, 431, 499, 500, 501, 503, 504, 505, 507, 412, 0};
  static constexpr size_t kMaxRoutes = 120;
  // Index for responses without a route.
  static constexpr size_t kNoRoute = kMaxRoutes;

  Counter accepted{0}, closed{0}, received{0}, sent{0};
  Counter bodies_in{0}, bodies_out{0};  // bytes of bodies: of requests that began, and of requests that ended
  std::array<std::array<Counter, kStatuses.size()>, kMaxRoutes + 1> responses{};

  static void add(Counter& counter, uint64_t value) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  // route: index in the table of routes, or kNoRoute.
  void response(size_t route, int status) noexcept {
    size_t i = 0;
    while (i + 1 < kStatuses.size() && kStatuses[i] != status) ++i;
    add(responses[route][i], 1);
  }
};

}  // namespace sconce::server::http
