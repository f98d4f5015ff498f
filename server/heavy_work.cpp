#include "server/heavy_work.h"

#include <sched.h>

#include <algorithm>

#include "server/failure.h"

namespace sconce {
namespace {

// As many as there are cores, but a few: the models need theirs.
size_t threads_at_most() noexcept {
  constexpr int kMost = 4;
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return static_cast<size_t>(std::clamp(count, 1, kMost));
}

}  // namespace

HeavyWork::HeavyWork() : most_(threads_at_most()) {}

void HeavyWork::submit(Task& task) {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= idle_ && threads_.size() < most_) {
    const auto start = [this] {
      threads_.reserve(most_);
      threads_.emplace_back([this] { run(); });
    };
    // With one thread it goes on, if more slowly.
    threads_.empty() ? start() : (void)succeeds(start);
  }
  task.next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = &task;
  last_ = &task;
  ++waiting_;
  wake_.notify_one();
}

void HeavyWork::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return first_ != nullptr || stopping_; });
    --idle_;
    if (first_ == nullptr) return;
    Task& task = *first_;
    first_ = task.next;
    --waiting_;
    lock.unlock();
    task.work(task.context);  // which may end the task's life
    lock.lock();
  }
}

void HeavyWork::stop() noexcept {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sconce
