// InlinePolicy: whether a request runs where it was read or through the queue, going by what runs have taken.
//
// A run that takes less than handing it over runs where it was read, unless its inputs are much larger than those that
// are known to be quick: all connections of the thread would wait for it. Where runs take longer, waiting requests may
// share one: from time to time some go through the queue, and if they cost less there than by themselves, they stay.
// Thread-safe; numbers that two threads count at the same time may be off by one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server {

class InlinePolicy {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  // below: runs that take longer on average are no one's to do but a lane's; 0: all. batches: requests can share runs.
  InlinePolicy(nanoseconds below, bool batches) noexcept : below_(below.count()), batches_(batches) {}

  // For the next request, whose inputs have so many bytes.
  bool run_inline(size_t bytes = 0) noexcept;
  // A run of `requests` took `time` of its thread. It counts as one by itself where there was one, of so many bytes.
  void ran(nanoseconds time, size_t requests, bool queued, size_t bytes = 0) noexcept;

 private:
  void turn() noexcept;

  const int64_t below_;
  const bool batches_;
  std::atomic<int64_t> singles_{0};             // seen, up to a few
  std::atomic<int64_t> single_{0};              // ns of one by itself, moving average
  std::atomic<int64_t> bytes_{0};               // of its inputs, likewise
  std::atomic<bool> queue_{false};              // where requests go at present
  std::atomic<int64_t> left_{0};                // requests until that is looked at again
  std::atomic<int64_t> rest_{256};              // how many do not try the queue after a try in vain
  std::atomic<int64_t> busy_{0}, requests_{0};  // of the queue's runs since then
  std::atomic<bool> turning_{false};
};

}  // namespace sconce::server
