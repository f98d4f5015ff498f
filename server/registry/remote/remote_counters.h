// What the metrics say of remote files. Any thread counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace sconce::server {

struct RemoteCounters {
  std::atomic<uint64_t> fetched{0};    // bytes
  std::atomic<uint64_t> downloads{0};  // files that came whole
  std::atomic<uint64_t> failures{0};   // looks and downloads that failed
  std::atomic<int64_t> cache_bytes{0};
  std::atomic<double> looked{0};  // when all sources were last looked at with success, seconds since 1970; 0: never
};

}  // namespace sconce::server
