// AnswerTap: passes a model's answers to the watchers that validate its weights. Without a watcher, a request costs one
// load. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "sconce/model.h"
#include "sconce/mutex.h"

namespace sconce::server::weights {

// Valid during the call.
struct SeenAnswer {
  std::span<const Tensor>
      inputs;  // in the model's order, in their state after the run: the model may have written some
  std::span<const Tensor> outputs;  // undefined where the model returned None
  const RunInfo& info;
  std::chrono::nanoseconds total;  // from the arrival of the request to its answer
  bool ran_alone = true;           // info.compute is the time of a run for this request alone
};

// Whether the tensors can be copied without a device. Outputs are on a device if the client asked for that.
bool on_host(std::span<const Tensor> tensors) noexcept;

class AnswerWatcher {
 public:
  virtual ~AnswerWatcher() = default;
  // Called on I/O threads, several at once, after the answer was sent. The thread's other connections wait meanwhile.
  virtual void saw(const SeenAnswer& answer) noexcept = 0;
};

class AnswerTap {
 public:
  bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }
  void show(const SeenAnswer& answer) const noexcept;
  void add(std::shared_ptr<AnswerWatcher> watcher);  // kBusy if there are kMost watchers
  // Calls in progress on other threads still reach the watcher; it lives until they return.
  void remove(const AnswerWatcher& watcher) noexcept;

 private:
  static constexpr size_t kMost = 4;
  using Watchers = std::array<std::shared_ptr<AnswerWatcher>, kMost>;  // null: free
  std::atomic<bool> watched_{false};
  mutable Mutex mutex_;
  Watchers watchers_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::weights
