#include "server/scheduling/statistics.h"

#include <algorithm>

namespace sconce::server::scheduling {
namespace {

// Only the calling thread writes to the counter.
void add(std::atomic<uint64_t>& counter, uint64_t value) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

void add(std::atomic<uint64_t>& counter, std::chrono::nanoseconds value) noexcept {
  add(counter, static_cast<uint64_t>(std::max<int64_t>(value.count(), 0)));
}

size_t bucket_of(std::chrono::nanoseconds time) noexcept {
  const int64_t microseconds = (time.count() + 999) / 1000;
  return static_cast<size_t>(std::lower_bound(kLatencyBuckets.begin(), kLatencyBuckets.end(), microseconds) -
                             kLatencyBuckets.begin());
}

}  // namespace

void SharedTimes::count(std::chrono::nanoseconds time) noexcept {
  buckets_[bucket_of(time)].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)), std::memory_order_relaxed);
}

std::array<uint64_t, kLatencyBuckets.size() + 1> SharedTimes::buckets() const noexcept {
  std::array<uint64_t, kLatencyBuckets.size() + 1> counts{};
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = buckets_[i].load(std::memory_order_relaxed);
  return counts;
}

FailureReason failure_reason(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kQueueFull:
    case ErrorCode::kDeadlineExceeded:
      return FailureReason::kRejected;
    case ErrorCode::kCancelled:
      return FailureReason::kCanceled;
    case ErrorCode::kModelFailed:
    case ErrorCode::kDevice:
    case ErrorCode::kOutOfMemory:
      return FailureReason::kBackend;
    default:
      return FailureReason::kOther;
  }
}

void BatchTotals::add(uint64_t runs, uint64_t input, uint64_t compute, uint64_t output) noexcept {
  count += runs;
  input_ns += input;
  compute_ns += compute;
  output_ns += output;
}

void Statistics::success(size_t thread, const RequestTimes& times, int64_t rows) noexcept {
  Counters& c = counters_[thread];
  add(c.success, 1);
  add(c.inferences, static_cast<uint64_t>(rows));
  add(c.total_ns, times.total);
  add(c.queue_ns, times.queue);
  add(c.input_ns, times.input);
  add(c.compute_ns, times.compute);
  add(c.output_ns, times.output);
  add(c.latency[bucket_of(times.total)], 1);
  add(c.compute_latency[bucket_of(times.compute)], 1);
  add(c.queue_latency[bucket_of(times.queue)], 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  c.last_inference_ms.store(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()),
                            std::memory_order_relaxed);
}

void Statistics::execution(size_t thread, int64_t rows, std::chrono::nanoseconds input,
                           std::chrono::nanoseconds compute, std::chrono::nanoseconds output) noexcept {
  Counters& c = counters_[thread];
  add(c.executions, 1);
  if (static_cast<uint64_t>(rows) < kBatchSizes) {
    Counters::Batch& batch = c.batches[static_cast<size_t>(rows)];
    add(batch.count, 1);
    add(batch.input_ns, input);
    add(batch.compute_ns, compute);
    add(batch.output_ns, output);
    return;
  }
  const MutexLock lock(c.mutex);
  c.large[rows].add(1, static_cast<uint64_t>(input.count()), static_cast<uint64_t>(compute.count()),
                    static_cast<uint64_t>(output.count()));
}

void Statistics::failure(size_t thread, FailureReason reason, std::chrono::nanoseconds total) noexcept {
  Counters& c = counters_[thread];
  add(c.failures[static_cast<size_t>(reason)], 1);
  add(c.failure_ns, total);
}

Totals Statistics::totals() const {
  Totals sum;
  const auto get = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  for (const Counters& c : counters_) {
    sum.success += get(c.success);
    sum.inferences += get(c.inferences);
    sum.executions += get(c.executions);
    sum.last_inference_ms = std::max(sum.last_inference_ms, get(c.last_inference_ms));
    sum.total_ns += get(c.total_ns);
    sum.queue_ns += get(c.queue_ns);
    sum.input_ns += get(c.input_ns);
    sum.compute_ns += get(c.compute_ns);
    sum.output_ns += get(c.output_ns);
    sum.failure_ns += get(c.failure_ns);
    for (size_t i = 0; i < c.failures.size(); ++i) {
      const uint64_t count = get(c.failures[i]);
      sum.failures_by_reason[i] += count;
      sum.failures += count;
    }
    for (size_t i = 0; i < c.latency.size(); ++i) {
      sum.latency[i] += get(c.latency[i]);
      sum.compute_latency[i] += get(c.compute_latency[i]);
      sum.queue_latency[i] += get(c.queue_latency[i]);
    }
    for (size_t i = 0; i < c.batches.size(); ++i) {
      const Counters::Batch& b = c.batches[i];
      if (const uint64_t count = get(b.count); count != 0)
        sum.batches[static_cast<int64_t>(i)].add(count, get(b.input_ns), get(b.compute_ns), get(b.output_ns));
    }
    const MutexLock lock(c.mutex);
    for (const auto& [rows, b] : c.large) sum.batches[rows].add(b.count, b.input_ns, b.compute_ns, b.output_ns);
  }
  return sum;
}

}  // namespace sconce::server::scheduling
