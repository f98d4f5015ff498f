#include "server/support/process/deferred_deleter.h"

#include <doctest/doctest.h>

#include <vector>

namespace sconce::server {
namespace {

struct Log {
  std::atomic<int> destroyed{0};
  std::atomic<std::thread::id> thread;
};

struct Leaf final : DeletedLater {
  explicit Leaf(Log& log) : log(log) {}
  ~Leaf() override {
    log.thread = std::this_thread::get_id();
    ++log.destroyed;
  }
  Log& log;
};

struct Branch final : DeletedLater {
  std::vector<std::shared_ptr<Leaf>> leaves;
};

}  // namespace

TEST_CASE("reaper: destroys on its own thread, after the last holder") {
  Log log;
  DeferredDeleter reaper;
  std::shared_ptr<Leaf> leaf = reaper.own(std::make_unique<Leaf>(log));
  std::shared_ptr<const Leaf> other = leaf;
  leaf.reset();
  CHECK(log.destroyed == 0);
  other.reset();
  while (log.destroyed == 0) std::this_thread::yield();
  CHECK(log.thread.load() != std::this_thread::get_id());
}

TEST_CASE("reaper: ends when everything is gone, what others held too") {
  Log log;
  {
    DeferredDeleter reaper;
    for (int i = 0; i < 100; ++i) {
      std::shared_ptr<Branch> branch = reaper.own(std::make_unique<Branch>());
      for (int j = 0; j < 10; ++j) branch->leaves.push_back(reaper.own(std::make_unique<Leaf>(log)));
    }
  }
  CHECK(log.destroyed == 1000);
}

TEST_CASE("reaper: many threads let go") {
  Log log;
  {
    DeferredDeleter reaper;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) reaper.own(std::make_unique<Leaf>(log));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(log.destroyed == 4000);
}

}  // namespace sconce::server
