// AnswerTap: shows the answers of a model to those who judge its weights. While nobody looks, a request pays for one
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

namespace sconce::server {

// Valid while it is shown.
struct SeenAnswer {
  std::span<const Tensor> inputs;   // in the model's order, as the run left them: the model may have written some
  std::span<const Tensor> outputs;  // undefined where the model returned None
  const RunInfo& info;
  std::chrono::nanoseconds total;  // from the request to its answer
  bool ran_alone = true;           // info.compute is of a run for this request alone
};

// Whether the tensors can be copied without a device. Outputs are on one if the client asked for that.
bool on_host(std::span<const Tensor> tensors) noexcept;

class AnswerWatcher {
 public:
  virtual ~AnswerWatcher() = default;
  // Called by I/O threads, several at once, after the answer was sent. The thread's other connections wait meanwhile.
  virtual void saw(const SeenAnswer& answer) noexcept = 0;
};

class AnswerTap {
 public:
  bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }
  void show(const SeenAnswer& answer) const noexcept;
  void add(std::shared_ptr<AnswerWatcher> watcher);  // kBusy if there are kMost
  // Threads that show an answer at this moment still show it to the watcher, and keep it until then.
  void remove(const AnswerWatcher& watcher) noexcept;

 private:
  static constexpr size_t kMost = 4;
  using Watchers = std::array<std::shared_ptr<AnswerWatcher>, kMost>;  // null: nobody
  std::atomic<bool> watched_{false};
  mutable Mutex mutex_;
  Watchers watchers_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
