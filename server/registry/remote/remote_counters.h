// Counters of remote files, for metrics. Any thread counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace sconce::server::registry {

struct RemoteCounters {
  std::atomic<uint64_t> fetched{0};    // bytes
  std::atomic<uint64_t> downloads{0};  // complete files
  std::atomic<uint64_t> failures{0};   // failed polls and downloads
  std::atomic<int64_t> cache_bytes{0};
  std::atomic<double> looked{0};  // time of the last successful poll of all sources, in seconds since 1970; 0: never
};

}  // namespace sconce::server::registry
