#include "sconce/mutex.h"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace sconce {
namespace {

static_assert(sizeof(Mutex) == sizeof(std::mutex) && sizeof(ConditionVariable) == sizeof(std::condition_variable));
constinit Mutex global;

// Whether another thread could take it now.
bool is_free(Mutex& mutex) {
  return std::async(std::launch::async,
                    [&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS {
                      const bool taken = mutex.try_lock();
                      if (taken) mutex.unlock();
                      return taken;
                    })
      .get();
}

struct Box {
  Mutex mutex;
  ConditionVariable changed;
  int value SCONCE_GUARDED_BY(mutex) = 0;
};

}  // namespace

TEST_CASE("mutex: held for a scope, or until unlock()") {
  CHECK(is_free(global));
  {
    MutexLock lock(global);
    CHECK_FALSE(is_free(global));
    lock.unlock();
    CHECK(is_free(global));
    lock.lock();
    CHECK_FALSE(is_free(global));
  }
  CHECK(is_free(global));
  {
    MutexLock lock(global);
    lock.unlock();
  }
  CHECK(is_free(global));
  if (global.try_lock()) {
    const MutexLock lock(global, std::adopt_lock);
    CHECK_FALSE(is_free(global));
  } else {
    FAIL_CHECK("somebody holds a mutex that is free");
  }
  CHECK(is_free(global));
}

TEST_CASE("mutex: additions of threads are not lost") {
  Box box;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        const MutexLock lock(box.mutex);
        ++box.value;
      }
    });
  threads.clear();
  const MutexLock lock(box.mutex);
  CHECK(box.value == 40000);
}

TEST_CASE("mutex: who waits leaves it, and holds it afterwards") {
  Box box;
  const std::jthread other([&] {
    for (int turn : {1, 3}) {
      const MutexLock lock(box.mutex);
      while (box.value != turn - 1) box.changed.wait(box.mutex);
      box.value = turn;
      box.changed.notify_all();
    }
  });
  const MutexLock lock(box.mutex);
  while (box.value != 1) box.changed.wait(box.mutex);
  CHECK_FALSE(is_free(box.mutex));
  box.value = 2;
  box.changed.notify_one();
  const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (box.value != 3) REQUIRE(box.changed.wait_until(box.mutex, late) == std::cv_status::no_timeout);
  CHECK_FALSE(is_free(box.mutex));
}

TEST_CASE("mutex: waiting ends at its time") {
  Box box;
  const MutexLock lock(box.mutex);
  const auto begin = std::chrono::steady_clock::now();
  constexpr std::chrono::milliseconds kTime(20);
  while (box.changed.wait_for(box.mutex, kTime) == std::cv_status::no_timeout) {
  }
  CHECK(std::chrono::steady_clock::now() - begin >= kTime);
  CHECK_FALSE(is_free(box.mutex));
  while (box.changed.wait_until(box.mutex, begin + 2 * kTime) == std::cv_status::no_timeout) {
  }
  CHECK(std::chrono::steady_clock::now() - begin >= 2 * kTime);
  CHECK_FALSE(is_free(box.mutex));
}

}  // namespace sconce
