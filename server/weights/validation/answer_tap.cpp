#include "server/weights/validation/answer_tap.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"

namespace sconce::server::weights {

bool on_host(std::span<const Tensor> tensors) noexcept {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    return !tensor.defined() || (tensor.is_cpu() && tensor.layout() == Layout::kStrided);
  });
}

void AnswerTap::show(const SeenAnswer& answer) const noexcept {
  Watchers watchers;
  {
    const MutexLock lock(mutex_);
    watchers = watchers_;
  }
  for (const std::shared_ptr<AnswerWatcher>& watcher : watchers)
    if (watcher) watcher->saw(answer);
}

void AnswerTap::add(std::shared_ptr<AnswerWatcher> watcher) {
  const MutexLock lock(mutex_);
  const auto free = std::find(watchers_.begin(), watchers_.end(), nullptr);
  SCONCE_CHECK(free != watchers_.end(), kBusy, "the answers of this model are watched ", kMost, " times already");
  *free = std::move(watcher);
  watched_.store(true, std::memory_order_relaxed);
}

void AnswerTap::remove(const AnswerWatcher& watcher) noexcept {
  std::shared_ptr<AnswerWatcher> gone;  // destroyed without the lock
  const MutexLock lock(mutex_);
  for (std::shared_ptr<AnswerWatcher>& other : watchers_)
    if (other.get() == &watcher) gone.swap(other);
  watched_.store(std::any_of(watchers_.begin(), watchers_.end(), [](const auto& other) { return other != nullptr; }),
                 std::memory_order_relaxed);
}

}  // namespace sconce::server::weights
