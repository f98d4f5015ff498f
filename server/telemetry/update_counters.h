// UpdateCounters: counts how weight updates ended, and audit entries that were lost, for metrics. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace sconce::server::telemetry {

struct UpdateCounters {
  std::atomic<uint64_t> done{0}, failed{0}, cancelled{0};
  std::atomic<uint64_t> guards_passed{0}, guards_rolled_back{0};
  std::atomic<uint64_t> audit_failures{0};  // entries of the audit log that could not be written
};

}  // namespace sconce::server::telemetry
