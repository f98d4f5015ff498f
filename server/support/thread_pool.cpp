#include "server/support/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "server/support/failure.h"
#include "server/support/memory/free_memory.h"

namespace sconce::server {
namespace {

// All cores but a few, which are left to the models.
size_t threads_at_most() noexcept {
  constexpr int kMost = 4;
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return static_cast<size_t>(std::clamp(count, 1, kMost));
}

}  // namespace

ThreadPool::ThreadPool() : most_(threads_at_most()) {}

void ThreadPool::start() {
  const MutexLock lock(mutex_);
  if (threads_.empty()) start_thread();
}

void ThreadPool::start_thread() {
  threads_.reserve(most_);
  threads_.emplace_back([this] { run(); });
}

void ThreadPool::submit(Task& task) {
  const MutexLock lock(mutex_);
  if (waiting_ >= idle_ && threads_.size() < most_) {
    // If no thread can be started, the running threads do the work.
    if (threads_.empty()) {
      start_thread();
    } else {
      succeeds([this] {
        mutex_.assert_held();
        start_thread();
      });
    }
  }
  add(task);
  ++waiting_;
  wake_.notify_one();
}

// A linear search, because few clients wait at a time, each for work of a hundred microseconds or more.
void ThreadPool::add(Task& task) noexcept {
  task.next = task.after = nullptr;
  task.last = &task;
  for (Task* first = first_; first != nullptr; first = first->next) {
    if (first->client != task.client) continue;
    first->last = first->last->after = &task;
    return;
  }
  (first_ == nullptr ? first_ : last_->next) = &task;
  last_ = &task;
}

// The client's next task is queued behind one task of each other client.
ThreadPool::Task& ThreadPool::take() noexcept {
  Task& task = *first_;
  first_ = task.next;
  if (Task* const following = task.after) {
    following->last = task.last;
    following->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = following;
    last_ = following;
  }
  return task;
}

void ThreadPool::run() noexcept {
  MutexLock lock(mutex_);
  bool worked = false;
  for (;;) {
    ++idle_;
    // Tasks leave large memory that other threads freed: an idle thread returns it to the system.
    const auto rested = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (worked && !called()) {
      if (wake_.wait_until(mutex_, rested) == std::cv_status::no_timeout || called()) continue;
      worked = false;
      give_back_free_memory();
    }
    while (!called()) wake_.wait(mutex_);
    --idle_;
    if (first_ == nullptr) return;
    Task& task = take();
    --waiting_;
    lock.unlock();
    task.work(task.context);  // may destroy the task
    lock.lock();
    worked = true;
  }
}

void ThreadPool::stop() noexcept {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sconce::server
