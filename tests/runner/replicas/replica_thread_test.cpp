#include "src/runner/replicas/replica_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "tests/runner/counted_memory.h"

using namespace sconce;
using namespace sconce::runner;

namespace {

struct Request final : RunRequest {
  explicit Request(std::atomic<int>& done) : done_count(done) {}
  std::atomic<int>& done_count;
  void finished() noexcept override {
    done_count.fetch_add(1);
    done_count.notify_all();
  }
};

void wait_for(std::atomic<int>& count, int value) {
  for (int seen = count.load(); seen < value; seen = count.load()) count.wait(seen);
}

}  // namespace

TEST_CASE("lane: requests run in the order in which one thread submits them") {
  std::vector<const RunRequest*> order;
  std::atomic<int> done{0};
  std::vector<std::unique_ptr<Request>> requests;
  {
    ReplicaThread lane([&](RunRequest& r) { order.push_back(&r); }, {}, "test");
    for (int i = 0; i < 1000; ++i) requests.push_back(std::make_unique<Request>(done));
    for (auto& r : requests) lane.submit(*r);
    wait_for(done, 1000);
    CHECK(lane.load() == 0);
  }
  REQUIRE(order.size() == requests.size());
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == requests[i].get());
}

TEST_CASE("lane: what a run throws ends in its request, and the lane goes on") {
  std::atomic<int> done{0};
  Request bad(done), good(done);
  int runs = 0;
  ReplicaThread lane(
      [&](RunRequest& r) {
        ++runs;
        if (&r == &bad) throw Error(ErrorCode::kModelFailed, "no");
      },
      {}, "test");
  lane.submit(bad);
  lane.submit(good);
  wait_for(done, 2);
  CHECK(runs == 2);
  CHECK(!good.error);
  REQUIRE(bad.error);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(bad.error), "no", Error);
}

TEST_CASE("lane: without memory for a thread a request is told so, and the next one starts it") {
  std::atomic<int> done{0}, ran{0};
  ReplicaThread lane([&](RunRequest&) { ++ran; }, {}, "test");
  Request refused(done), taken(done);
  {
    const test::NoMemory none;
    lane.submit(refused);
  }
  CHECK(done == 1);
  REQUIRE(refused.error);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(refused.error), "no thread can be started for a replica", Error);
  lane.submit(taken);
  wait_for(done, 2);
  CHECK(ran == 1);
  CHECK_FALSE(taken.error);
}

TEST_CASE("lane: many submitters lose nothing, and leaving runs what is queued") {
  std::atomic<int> done{0}, runs{0};
  std::vector<std::unique_ptr<Request>> requests;
  for (int i = 0; i < 4000; ++i) requests.push_back(std::make_unique<Request>(done));
  {
    ReplicaThread lane([&](RunRequest&) { runs.fetch_add(1); }, {}, "test");
    std::vector<std::thread> submitters;
    for (int t = 0; t < 4; ++t)
      submitters.emplace_back([&, t] {
        for (int i = 0; i < 1000; ++i) lane.submit(*requests[static_cast<size_t>(t * 1000 + i)]);
      });
    for (auto& thread : submitters) thread.join();
  }
  CHECK(runs == 4000);
  CHECK(done == 4000);
}

TEST_CASE("lane: cores that do not exist are refused") {
  CHECK_THROWS_AS(ReplicaThread([](RunRequest&) {}, {-1}, "x"), Error);
  CHECK_THROWS_AS(ReplicaThread([](RunRequest&) {}, {1000}, "x"), Error);
}
