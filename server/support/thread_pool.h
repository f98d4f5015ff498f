// ThreadPool: threads for work that would delay all connections of an I/O thread: parsing and writing large JSON,
// compression and decompression. Threads start when first needed. Thread-safe.
//
// Clients are served round-robin: a client waits for at most one task of every other client, however many tasks that
// client has.
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
  // A task. Its owner keeps it until it was called.
  struct Task {
    void (*work)(void* context) noexcept = nullptr;
    void* context = nullptr;
    uint64_t client = 0;  // from client_of()

   private:
    friend class ThreadPool;
    Task* next = nullptr;                    // of a client's first task: the first task of the next client
    Task *after = nullptr, *last = nullptr;  // the client's further tasks; `last` only of the first task
  };

  // A number for all connections from one address, in any protocol. peer: "192.0.2.7:50000", "[2001:db8::7]:50000".
  static uint64_t client_of(std::string_view peer) noexcept {
    return std::hash<std::string_view>()(peer.substr(0, peer.rfind(':')));
  }

  ThreadPool();
  explicit ThreadPool(size_t most_threads) : most_(most_threads) {}
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool() { stop(); }

  // Starts the first thread. Afterwards submit() does not throw. std::system_error, std::bad_alloc.
  void start();
  // Calls the task on one of the threads, a client's tasks in the order of arrival. std::system_error if there is no
  // thread and none can be started; then the task is not called.
  void submit(Task& task);
  // Returns when all tasks are done. No more may be submitted.
  void stop() noexcept;

 private:
  void run() noexcept;
  void start_thread() SCONCE_REQUIRES(mutex_);
  void add(Task& task) noexcept SCONCE_REQUIRES(mutex_);
  Task& take() noexcept SCONCE_REQUIRES(mutex_);
  bool called() const noexcept SCONCE_REQUIRES(mutex_) { return first_ != nullptr || stopping_; }

  const size_t most_;
  Mutex mutex_;
  ConditionVariable wake_;
  // The first task of each waiting client, round-robin.
  Task *first_ SCONCE_GUARDED_BY(mutex_) = nullptr, *last_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  size_t waiting_ SCONCE_GUARDED_BY(mutex_) = 0, idle_ SCONCE_GUARDED_BY(mutex_) = 0;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
