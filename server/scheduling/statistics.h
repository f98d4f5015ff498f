// Statistics: a model's requests and their times. Each I/O thread has its own counters, so counting shares no cache
// line and needs no atomic read-modify-write. Readers add up the counters of all threads.
//
// Count only on the thread that owns the counters. totals() is for any thread, and may see a request partly counted.
// Threads without counters, such as those on which the steps of pipelines end, share one set under a mutex.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "sconce/mutex.h"
#include "server/scheduling/model_sets.h"

namespace sconce::server::scheduling {

// One answered request.
struct RequestTimes {
  std::chrono::nanoseconds total{}, queue{}, input{}, compute{}, output{};
};

// All runs of one batch size.
struct BatchTotals {
  uint64_t count = 0, input_ns = 0, compute_ns = 0, output_ns = 0;

  void add(uint64_t runs, uint64_t input, uint64_t compute, uint64_t output) noexcept;
};

// Upper bounds of the latency histogram's buckets in microseconds; the last bucket has no bound.
constexpr std::array<uint32_t, 16> kLatencyBuckets = {50,    100,   200,    500,    1000,   2000,    5000,    10000,
                                                      20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000};

// Why a request failed, in the words of Triton's metric nv_inference_request_failure.
enum class FailureReason : int8_t { kRejected, kCanceled, kBackend, kOther };
constexpr size_t kFailureReasons = 4;
FailureReason failure_reason(ErrorCode code) noexcept;

// Sums over all threads.
struct Totals {
  uint64_t success = 0, failures = 0;
  std::array<uint64_t, kFailureReasons> failures_by_reason{};
  uint64_t inferences = 0;  // rows, if there is a batch dimension
  uint64_t executions = 0;
  std::map<int64_t, BatchTotals> batches;  // by batch size
  uint64_t last_inference_ms = 0;          // since 1970
  uint64_t total_ns = 0, queue_ns = 0, input_ns = 0, compute_ns = 0, output_ns = 0, failure_ns = 0;
  std::array<uint64_t, kLatencyBuckets.size() + 1> latency{};
  std::array<uint64_t, kLatencyBuckets.size() + 1> compute_latency{}, queue_latency{};
};

struct ModelStatistics {
  std::string name;
  int64_t version = 1;
  Totals totals;
  uint64_t constant_bytes = 0;
  std::vector<ModelSets::Count> sets;  // named sets only
};
// A histogram of times that several threads count.
class SharedTimes {
 public:
  void count(std::chrono::nanoseconds time) noexcept;
  std::array<uint64_t, kLatencyBuckets.size() + 1> buckets() const noexcept;
  uint64_t sum_ns() const noexcept { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kLatencyBuckets.size() + 1> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
};

// Counters of decode loops (docs/generate.md).
struct LoopCounts {
  std::atomic<int64_t> running{0};
  std::atomic<uint64_t> begun{0}, steps{0}, tokens{0};
  SharedTimes first, between;  // time from a loop's start to its first token, and between tokens
};

class Statistics {
 public:
  explicit Statistics(size_t threads) : counters_(threads + 1) {}

  void success(size_t thread, const RequestTimes& times, int64_t rows) noexcept;
  // Counts a run, which may have served several requests. rows: batch size.
  void execution(size_t thread, int64_t rows, std::chrono::nanoseconds input, std::chrono::nanoseconds compute,
                 std::chrono::nanoseconds output) noexcept;
  void failure(size_t thread, FailureReason reason, std::chrono::nanoseconds total) noexcept;
  // For threads without counters: calls count(thread) under the mutex.
  template <class F>
  void count_locked(F&& count) noexcept {
    const MutexLock lock(mutex_);
    count(counters_.size() - 1);
  }
  Totals totals() const;
  LoopCounts& loops() noexcept { return loops_; }

 private:
  using Counter = std::atomic<uint64_t>;
  static constexpr size_t kBatchSizes = 65;
  struct alignas(64) Counters {
    Counter success, inferences, executions, last_inference_ms;
    Counter total_ns, queue_ns, input_ns, compute_ns, output_ns, failure_ns;
    std::array<Counter, kFailureReasons> failures;
    std::array<Counter, kLatencyBuckets.size() + 1> latency, compute_latency, queue_latency;
    struct Batch {
      Counter count, input_ns, compute_ns, output_ns;
    };
    std::array<Batch, kBatchSizes> batches;  // of 0 rows, 1 row, ...
    mutable Mutex mutex;
    std::map<int64_t, BatchTotals> large SCONCE_GUARDED_BY(mutex);  // larger batch sizes
  };
  std::vector<Counters> counters_;  // the last one is for count_locked()
  Mutex mutex_;
  LoopCounts loops_;
};

}  // namespace sconce::server::scheduling
