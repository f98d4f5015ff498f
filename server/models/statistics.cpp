#include "server/models/statistics.h"

#include <algorithm>

namespace sconce::server {
namespace {

// Only the caller writes to it.
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

void Totals::add(const Totals& other) {
  success += other.success;
  failures += other.failures;
  inferences += other.inferences;
  executions += other.executions;
  last_inference_ms = std::max(last_inference_ms, other.last_inference_ms);
  total_ns += other.total_ns;
  queue_ns += other.queue_ns;
  input_ns += other.input_ns;
  compute_ns += other.compute_ns;
  output_ns += other.output_ns;
  failure_ns += other.failure_ns;
  for (size_t i = 0; i < failures_by_reason.size(); ++i) failures_by_reason[i] += other.failures_by_reason[i];
  for (size_t i = 0; i < latency.size(); ++i) latency[i] += other.latency[i];
  for (const auto& [rows, batch] : other.batches) {
    BatchTotals& mine = batches[rows];
    mine.count += batch.count;
    mine.input_ns += batch.input_ns;
    mine.compute_ns += batch.compute_ns;
    mine.output_ns += batch.output_ns;
  }
  for (size_t i = 0; i < compute_latency.size(); ++i) compute_latency[i] += other.compute_latency[i];
}

void Statistics::success(size_t thread, const RequestTimes& times, int64_t rows) noexcept {
  Counters& c = counters_[thread];
  server::add(c.success, 1);
  server::add(c.inferences, static_cast<uint64_t>(rows));
  server::add(c.total_ns, times.total);
  server::add(c.queue_ns, times.queue);
  server::add(c.input_ns, times.input);
  server::add(c.compute_ns, times.compute);
  server::add(c.output_ns, times.output);
  server::add(c.latency[bucket_of(times.total)], 1);
  server::add(c.compute_latency[bucket_of(times.compute)], 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  c.last_inference_ms.store(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()),
                            std::memory_order_relaxed);
}

void Statistics::execution(size_t thread, int64_t rows, std::chrono::nanoseconds input,
                           std::chrono::nanoseconds compute, std::chrono::nanoseconds output) noexcept {
  Counters& c = counters_[thread];
  server::add(c.executions, 1);
  if (static_cast<uint64_t>(rows) < kBatchSizes) {
    Counters::Batch& batch = c.batches[static_cast<size_t>(rows)];
    server::add(batch.count, 1);
    server::add(batch.input_ns, input);
    server::add(batch.compute_ns, compute);
    server::add(batch.output_ns, output);
    return;
  }
  const MutexLock lock(c.mutex);
  BatchTotals& batch = c.large[rows];
  batch.count += 1;
  batch.input_ns += static_cast<uint64_t>(input.count());
  batch.compute_ns += static_cast<uint64_t>(compute.count());
  batch.output_ns += static_cast<uint64_t>(output.count());
}

void Statistics::failure(size_t thread, FailureReason reason, std::chrono::nanoseconds total) noexcept {
  Counters& c = counters_[thread];
  server::add(c.failures[static_cast<size_t>(reason)], 1);
  server::add(c.failure_ns, total);
}

Totals Statistics::totals() const {
  Totals sum;
  const auto get = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  for (const Counters& c : counters_) {
    Totals t;
    t.success = get(c.success);
    t.inferences = get(c.inferences);
    t.executions = get(c.executions);
    t.last_inference_ms = get(c.last_inference_ms);
    t.total_ns = get(c.total_ns);
    t.queue_ns = get(c.queue_ns);
    t.input_ns = get(c.input_ns);
    t.compute_ns = get(c.compute_ns);
    t.output_ns = get(c.output_ns);
    t.failure_ns = get(c.failure_ns);
    for (size_t i = 0; i < c.failures.size(); ++i) {
      t.failures_by_reason[i] = get(c.failures[i]);
      t.failures += t.failures_by_reason[i];
    }
    for (size_t i = 0; i < c.latency.size(); ++i) {
      t.latency[i] = get(c.latency[i]);
      t.compute_latency[i] = get(c.compute_latency[i]);
    }
    for (size_t i = 0; i < c.batches.size(); ++i) {
      const Counters::Batch& b = c.batches[i];
      if (const uint64_t count = get(b.count); count != 0)
        t.batches[static_cast<int64_t>(i)] = {count, get(b.input_ns), get(b.compute_ns), get(b.output_ns)};
    }
    {
      const MutexLock lock(c.mutex);
      for (const auto& [rows, batch] : c.large) t.batches[rows] = batch;
    }
    sum.add(t);
  }
  return sum;
}

}  // namespace sconce::server
