// InlinePolicy: decides whether a request runs on the I/O thread or goes through the queue, by the times of earlier
// runs.
//
// If a run is shorter than a thread hand-over, it executes on the I/O thread, unless its inputs are much larger than
// those known to be quick, because all connections of the thread wait meanwhile. Longer runs may be shared by waiting
// requests: now and then some requests go through the queue, and all do if those cost less there than alone.
// Thread-safe; numbers that two threads count at once may be off by one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server {

class InlinePolicy {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  // below: longer runs always go to a lane; 0: no such limit. batches: requests can share runs.
  InlinePolicy(nanoseconds below, bool batches) noexcept : below_(below.count()), batches_(batches) {}

  // Decides for the next request; bytes: of its inputs.
  bool run_inline(size_t bytes = 0) noexcept;
  // A run of `requests` used its thread for `time`. If there was one request, with inputs of `bytes`, it counts as
  // alone.
  void ran(nanoseconds time, size_t requests, bool queued, size_t bytes = 0) noexcept;
  // From now on requests cannot share runs.
  void end_sharing() noexcept { batches_.store(false, std::memory_order_relaxed); }

 private:
  void turn() noexcept;

  const int64_t below_;
  std::atomic<bool> batches_;
  std::atomic<int64_t> singles_{0};             // seen, up to a few
  std::atomic<int64_t> single_{0};              // ns of a run alone, moving average
  std::atomic<int64_t> bytes_{0};               // of its inputs, moving average
  std::atomic<bool> queue_{false};              // where requests go at present
  std::atomic<int64_t> left_{0};                // requests until that is decided again
  std::atomic<int64_t> rest_{256};              // requests that skip the queue after a trial in vain
  std::atomic<int64_t> busy_{0}, requests_{0};  // of the queue's runs since then
  std::atomic<bool> turning_{false};
};

}  // namespace sconce::server
