#include "server/support/thread_pool.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

using namespace sconce;
using namespace sconce::server;

TEST_CASE("heavy_work: each task is done once, those that wait at the end too") {
  static std::atomic<int> done;
  done = 0;
  struct One {
    ThreadPool::Task task;
    std::atomic<int> calls{0};
  };
  std::array<One, 1000> ones;
  {
    ThreadPool work;
    for (One& one : ones) {
      one.task.context = &one;
      one.task.work = [](void* context) noexcept {
        ++static_cast<One*>(context)->calls;
        ++done;
      };
      work.submit(one.task);
    }
  }
  CHECK(done == 1000);
  for (const One& one : ones) CHECK(one.calls == 1);
}

TEST_CASE("heavy_work: a task may be submitted again when it was done") {
  static std::atomic<int> calls;
  calls = 0;
  ThreadPool work;
  ThreadPool::Task task;
  task.work = [](void*) noexcept {
    ++calls;
    calls.notify_one();
  };
  for (int i = 0; i < 100; ++i) {
    const int before = calls;
    work.submit(task);
    calls.wait(before);
  }
  CHECK(calls == 100);
}

TEST_CASE("heavy_work: clients take turns, however many tasks one of them has") {
  static std::mutex mutex;
  static std::vector<int> order;
  static std::atomic<bool> go;
  order.clear();
  go = false;
  struct One {
    ThreadPool::Task task;
    int number = 0;
  };
  std::array<One, 8> ones;
  const auto note = [](void* context) noexcept {
    const std::lock_guard lock(mutex);
    order.push_back(static_cast<One*>(context)->number);
  };
  ThreadPool::Task gate;
  gate.work = [](void*) noexcept { go.wait(false); };
  {
    ThreadPool work(1);  // one thread, which waits
    work.submit(gate);
    // Client 1 has five tasks before clients 2 and 3 come.
    const std::array<uint64_t, 8> clients = {1, 1, 1, 1, 1, 2, 3, 2};
    for (size_t i = 0; i < ones.size(); ++i) {
      ones[i].number = static_cast<int>(i);
      ones[i].task.client = clients[i];
      ones[i].task.context = &ones[i];
      ones[i].task.work = note;
      work.submit(ones[i].task);
    }
    go = true;
    go.notify_all();
  }
  CHECK(order == std::vector<int>{0, 5, 6, 1, 7, 2, 3, 4});
}

TEST_CASE("heavy_work: without a task there is nothing to end") {
  ThreadPool work;
  work.stop();
  work.stop();
}
