// HeavyWork: threads for work that would hold up all connections of an I/O thread: reading and writing large JSON,
// compression and decompression. They start when first needed. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace sconce::server {

class HeavyWork {
 public:
  // One piece of work. Its owner keeps it until it was called.
  struct Task {
    void (*work)(void* context) noexcept = nullptr;
    void* context = nullptr;
    Task* next = nullptr;
  };

  HeavyWork();
  HeavyWork(const HeavyWork&) = delete;
  ~HeavyWork() { stop(); }

  // Calls the task on one of the threads, in the order of arrival. std::system_error if there is no thread and none can
  // be started; the task is then not called.
  void submit(Task& task);
  // Ends when all tasks are done. No more may be submitted.
  void stop() noexcept;

 private:
  void run() noexcept;

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Task *first_ = nullptr, *last_ = nullptr;  // guarded by mutex_, as is what follows
  size_t waiting_ = 0, idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sconce::server
