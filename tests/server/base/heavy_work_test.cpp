#include "server/base/heavy_work.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>

using namespace sconce;
using namespace sconce::server;

TEST_CASE("heavy_work: each task is done once, those that wait at the end too") {
  static std::atomic<int> done;
  done = 0;
  struct One {
    HeavyWork::Task task;
    std::atomic<int> calls{0};
  };
  std::array<One, 1000> ones;
  {
    HeavyWork work;
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
  HeavyWork work;
  HeavyWork::Task task;
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

TEST_CASE("heavy_work: without a task there is nothing to end") {
  HeavyWork work;
  work.stop();
  work.stop();
}
