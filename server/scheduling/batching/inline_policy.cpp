#include "server/scheduling/batching/inline_policy.h"

#include <algorithm>

namespace sconce::server::scheduling {
namespace {

constexpr int64_t kProbation = 8;  // number of runs before short runs are trusted
constexpr int64_t kAverageOver = 8;
constexpr int64_t kHandOver = 8000;  // ns that the queue adds to a request
constexpr int64_t kTry = 64;         // number of requests of a trial
constexpr int64_t kStay = 1024;
constexpr int64_t kRest = 256, kLongestRest = 8192;
constexpr int64_t kLarger = 4;       // multiple of the usual bytes
constexpr int64_t kFewBytes = 4096;  // always allowed

void add(std::atomic<int64_t>& number, int64_t value) noexcept {
  number.store(number.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

}  // namespace

bool InlinePolicy::run_inline(size_t bytes) noexcept {
  if (below_ == 0 || singles_.load(std::memory_order_relaxed) < kProbation) return false;
  const int64_t single = single_.load(std::memory_order_relaxed);
  if (single >= below_) return false;
  const int64_t most = std::max(kFewBytes, kLarger * bytes_.load(std::memory_order_relaxed));
  if (static_cast<int64_t>(bytes) > most) return false;
  if (!batches_.load(std::memory_order_relaxed) || single < kHandOver) return true;
  if (left_.load(std::memory_order_relaxed) <= 0 && !deciding_.exchange(true, std::memory_order_acquire)) {
    decide();
    deciding_.store(false, std::memory_order_release);
  }
  add(left_, -1);
  return !queue_.load(std::memory_order_relaxed);
}

void InlinePolicy::decide() noexcept {
  int64_t left = kTry;
  bool queue = true;
  if (queue_.load(std::memory_order_relaxed)) {
    const int64_t requests = requests_.load(std::memory_order_relaxed);
    const int64_t each = requests == 0 ? INT64_MAX / 2 : busy_.load(std::memory_order_relaxed) / requests;
    const int64_t rest = rest_.load(std::memory_order_relaxed);
    queue = each + kHandOver < single_.load(std::memory_order_relaxed);
    left = queue ? kStay : rest;
    rest_.store(queue ? kRest : std::min(rest * 2, kLongestRest), std::memory_order_relaxed);
  }
  busy_.store(0, std::memory_order_relaxed);
  requests_.store(0, std::memory_order_relaxed);
  queue_.store(queue, std::memory_order_relaxed);
  left_.store(left, std::memory_order_relaxed);
}

void InlinePolicy::ran(nanoseconds time, size_t requests, bool queued, size_t bytes) noexcept {
  if (requests == 1) {
    const int64_t seen = singles_.load(std::memory_order_relaxed);
    const auto average = [seen](std::atomic<int64_t>& number, int64_t value) {
      const int64_t before = number.load(std::memory_order_relaxed);
      number.store(seen == 0 ? value : before + (value - before) / kAverageOver, std::memory_order_relaxed);
    };
    average(single_, time.count());
    average(bytes_, static_cast<int64_t>(bytes));
    if (seen < kProbation) singles_.store(seen + 1, std::memory_order_relaxed);
  }
  if (!queued) return;
  add(busy_, time.count());
  add(requests_, static_cast<int64_t>(requests));
}

}  // namespace sconce::server::scheduling
