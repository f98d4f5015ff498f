// InlinePolicy: decides from the times of earlier runs whether a request runs on the I/O thread or goes through the
// queue.
//
// A run that is shorter than a thread hand-over executes on the I/O thread, because the hand-over costs more. So does a
// run shorter than `below` if batching does not pay for the model. The
// exception is a request with much larger inputs than those known to be quick, because all connections of the thread
// wait meanwhile. Longer runs may benefit from batching: from time to time some requests go through the queue as a
// trial, and all requests do if a request costs less there than alone. Thread-safe; numbers that two threads count at
// once may be off by one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server::scheduling {

class InlinePolicy {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  // below: longer runs always go to a replica thread; 0: all runs do. batches: requests can share runs.
  InlinePolicy(nanoseconds below, bool batches) noexcept : below_(below.count()), batches_(batches) {}

  // Decides for the next request. bytes: size of its inputs.
  bool run_inline(size_t bytes = 0) noexcept;
  // A run of `requests` requests used its thread for `time`. A single request with inputs of `bytes` counts as a run
  // alone.
  void ran(nanoseconds time, size_t requests, bool queued, size_t bytes = 0) noexcept;
  // Requests can no longer share runs.
  void end_sharing() noexcept { batches_.store(false, std::memory_order_relaxed); }

 private:
  void decide() noexcept;

  const int64_t below_;
  std::atomic<bool> batches_;
  std::atomic<int64_t> singles_{0};             // number of runs alone, up to a few
  std::atomic<int64_t> single_{0};              // ns per run alone, moving average
  std::atomic<int64_t> bytes_{0};               // bytes of a run's inputs, moving average
  std::atomic<bool> queue_{false};              // whether requests currently go to the queue
  std::atomic<int64_t> left_{0};                // requests until the next decision
  std::atomic<int64_t> rest_{256};              // requests that skip the queue after a trial without benefit
  std::atomic<int64_t> busy_{0}, requests_{0};  // of the queue's runs since the last decision
  std::atomic<bool> deciding_{false};
};

}  // namespace sconce::server::scheduling
