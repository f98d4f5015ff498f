#include "src/device/threads.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "sconce/error.h"

using namespace sconce;

TEST_CASE("threads: every index once, whatever the number of threads") {
  for (const int threads : {1, 2, 3, 7}) {
    set_kernel_threads(threads);
    for (const int64_t length : {0, 1, 2, 5, 64, 1001})
      for (const int64_t grain : {0, 1, 3, 100, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(length));
        std::atomic<int> calls{0};
        parallel_for(10, 10 + length, grain, [&](int64_t b, int64_t e) noexcept {
          ++calls;
          for (int64_t i = b; i < e; ++i) ++seen[static_cast<size_t>(i - 10)];
        });
        CHECK(calls <= threads);
        for (const auto& count : seen) CHECK(count == 1);
      }
  }
}

TEST_CASE("threads: pieces are no shorter than the grain but the last") {
  set_kernel_threads(4);
  std::atomic<int> shorter{0};
  parallel_for(0, 103, 10, [&](int64_t b, int64_t e) noexcept {
    if (e - b < 10 && e != 103) ++shorter;
  });
  CHECK(shorter == 0);
}

TEST_CASE("threads: a loop within a loop runs on its thread alone") {
  set_kernel_threads(2);
  std::atomic<int> moved{0};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) noexcept {
    const auto id = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t, int64_t) noexcept {
      if (std::this_thread::get_id() != id) ++moved;
    });
  });
  CHECK(moved == 0);
}

TEST_CASE("threads: the number belongs to the thread that set it") {
  set_kernel_threads(5);
  int other = 0;
  std::thread([&] {
    set_kernel_threads(3);
    other = kernel_threads();
  }).join();
  CHECK(other == 3);
  CHECK(kernel_threads() == 5);
  CHECK_THROWS_AS(set_kernel_threads(0), Error);
  CHECK(kernel_threads() == 5);
}
