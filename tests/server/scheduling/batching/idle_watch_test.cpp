#include "server/scheduling/batching/idle_watch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "sconce/mutex.h"

namespace sconce::server::scheduling {

TEST_CASE("idle_watch: asleep after a period without a run, awake after the next run") {
  int woken = 0;
  IdleWatch watch([&] { ++woken; });
  CHECK_FALSE(watch.end_period());  // what ran before the first period
  CHECK_FALSE(watch.asleep());
  watch.ran();
  CHECK_FALSE(watch.end_period());  // this period had a run
  CHECK(watch.end_period());
  CHECK(watch.asleep());
  CHECK(woken == 0);
  watch.ran();
  CHECK(woken == 1);
  CHECK_FALSE(watch.asleep());
  watch.ran();
  CHECK(woken == 1);
  CHECK_FALSE(watch.end_period());
  CHECK(watch.end_period());
}

TEST_CASE("idle_watch: a run that ends while the watching thread falls asleep wakes it") {
  Mutex mutex;
  ConditionVariable changed;
  IdleWatch watch([&] {
    { const MutexLock lock(mutex); }
    changed.notify_one();
  });
  constexpr int kRounds = 2000;
  std::atomic<int> slept{0};
  std::thread sleeper([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (!watch.end_period()) {
      }
      slept.store(i + 1);
      const MutexLock lock(mutex);
      while (watch.asleep()) changed.wait(mutex);  // a lost wake hangs here
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    while (slept.load() <= i) std::this_thread::yield();
    watch.ran();
  }
  sleeper.join();
  CHECK(slept.load() == kRounds);
}

TEST_CASE("idle watch: after stop() no run wakes a thread") {
  int woken = 0;
  IdleWatch watch([&] { ++woken; });
  while (!watch.end_period()) {
  }
  watch.stop();
  CHECK_FALSE(watch.asleep());
  for (int i = 0; i < 3; ++i) watch.ran();
  CHECK(woken == 0);
}

}  // namespace sconce::server::scheduling
