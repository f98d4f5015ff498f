// InstantiationTimes: how long it takes a replica to make what it needs to run a named set. Thread-safe; of two times
// that come at once, one may be lost.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sconce::runner {

class InstantiationTimes {
 public:
  void took(std::chrono::nanoseconds time) noexcept {
    const int64_t seen = seen_.load(std::memory_order_relaxed), before = mean_.load(std::memory_order_relaxed);
    mean_.store(seen == 0 ? time.count() : before + (time.count() - before) / kAverageOver, std::memory_order_relaxed);
    if (seen < kProbation) seen_.store(seen + 1, std::memory_order_relaxed);
  }
  // Whether a thread that has other things to do may do it: it takes little more than handing it to another one.
  bool quick() const noexcept {
    return seen_.load(std::memory_order_relaxed) >= kProbation && mean_.load(std::memory_order_relaxed) < kQuick;
  }

 private:
  static constexpr int64_t kProbation = 8, kAverageOver = 8;
  static constexpr int64_t kQuick = 50'000;  // ns
  std::atomic<int64_t> seen_{0}, mean_{0};
};

}  // namespace sconce::runner
