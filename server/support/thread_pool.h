// ThreadPool: threads for work that would hold up all connections of an I/O thread: reading and writing large JSON,
// compression and decompression. They start when first needed. Thread-safe.
//
// Clients take turns: each waits for one task of every other client, however many tasks that one has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server {

class ThreadPool {
 public:
  // One piece of work. Its owner keeps it until it was called.
  struct Task {
    void (*work)(void* context) noexcept = nullptr;
    void* context = nullptr;
    uint64_t client = 0;  // whose it is, as client_of() says

   private:
    friend class ThreadPool;
    Task* next = nullptr;                    // of a client's first task: that of the next client
    Task *after = nullptr, *last = nullptr;  // the client's further tasks; `last` of the first one only
  };

  // A number for all connections of an address, of whatever protocol. peer: "192.0.2.7:50000", "[2001:db8::7]:50000".
  static uint64_t client_of(std::string_view peer) noexcept {
    return std::hash<std::string_view>()(peer.substr(0, peer.rfind(':')));
  }

  ThreadPool();
  explicit ThreadPool(size_t most_threads) : most_(most_threads) {}
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool() { stop(); }

  // Calls the task on one of the threads, a client's tasks in the order of arrival. std::system_error if there is no
  // thread and none can be started; the task is then not called.
  void submit(Task& task);
  // Ends when all tasks are done. No more may be submitted.
  void stop() noexcept;

 private:
  void run() noexcept;
  void add(Task& task) noexcept SCONCE_REQUIRES(mutex_);
  Task& take() noexcept SCONCE_REQUIRES(mutex_);
  bool called() const noexcept SCONCE_REQUIRES(mutex_) { return first_ != nullptr || stopping_; }

  const size_t most_;
  Mutex mutex_;
  ConditionVariable wake_;
  // The first task of each client that waits, in turn.
  Task *first_ SCONCE_GUARDED_BY(mutex_) = nullptr, *last_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  size_t waiting_ SCONCE_GUARDED_BY(mutex_) = 0, idle_ SCONCE_GUARDED_BY(mutex_) = 0;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
