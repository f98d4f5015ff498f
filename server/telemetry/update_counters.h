// UpdateCounters: counts how weight updates ended, for metrics. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace sconce::server {

struct UpdateCounters {
  std::atomic<uint64_t> done{0}, failed{0}, cancelled{0};
  std::atomic<uint64_t> guards_passed{0}, guards_rolled_back{0};
};

}  // namespace sconce::server
