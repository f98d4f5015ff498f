#include "server/scheduling/batching/batcher.h"

#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "doctest/doctest.h"
#include "sconce/check.h"
#include "tests/server/scheduling/batching/puppet.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

bool has_negative(const RunRequest& run) {
  const float* data = run.inputs[0].data_as<float>();
  return std::any_of(data, data + run.inputs[0].numel(), [](float x) { return x < 0; });
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(wire_name(e.code())) + ": " + e.what();
  }
}

}  // namespace

TEST_CASE("batcher: a request by itself runs in place") {
  Puppet puppet(up_to(8));
  TestRequest request(3, 2);
  puppet.batcher.submit(request);
  REQUIRE(puppet.launched.size() == 1);
  CHECK(puppet.batcher.waiting() == 1);
  CHECK(puppet.run_next() == 2);
  CHECK(puppet.inputs_of_run == request.inputs[0].data());
  CHECK(request.done());
  CHECK(request.output_values() == std::vector<float>(4, 6));
  CHECK(request.run_rows == 2);
  CHECK(request.info.weight_version == 1);
  CHECK(puppet.batcher.waiting() == 0);
  CHECK(puppet.launched.empty());
}

TEST_CASE("batcher: a run brings the last rows that all of its requests can use") {
  struct Case {
    std::vector<OutputRows> asked;
    int output;
    int64_t parts, largest;
  };
  const OutputRows none, few{0, {.largest = 1}}, more{0, {.largest = 40}}, rows{0, {.largest = 0}},
      other{1, {.largest = 1}};
  for (const Case& one : {Case{{few}, 0, 1, 1}, Case{{few, more}, 0, 2, 40}, Case{{more, few, few}, 0, 3, 40},
                          Case{{few, rows, more}, 0, 3, 0}, Case{{few, none}, -1, 1, 0}, Case{{none, few}, -1, 1, 0},
                          Case{{few, other}, -1, 1, 0}, Case{{none, none}, -1, 1, 0}, Case{{rows}, 0, 1, 0}}) {
    Puppet puppet(up_to(8));
    std::deque<TestRequest> requests;
    for (const OutputRows& asked : one.asked) {
      requests.emplace_back(1.0F);
      requests.back().last_rows = asked;
      requests.back().device_outputs = asked.output >= 0;
      puppet.batcher.submit(requests.back());
    }
    OutputRows got;
    bool stays = false;
    puppet.fail_if = [&](RunRequest& run) {
      got = run.last_rows;
      stays = run.device_outputs;
      return false;
    };
    CHECK(puppet.run_next() == static_cast<int64_t>(one.asked.size()));
    CHECK(got.output == one.output);
    CHECK(got.rows.parts == one.parts);
    CHECK(got.rows.largest == one.largest);
    CHECK(stays == std::all_of(one.asked.begin(), one.asked.end(), [](const OutputRows& r) { return r.output >= 0; }));
  }
}

TEST_CASE("batcher: a batch grows until its run starts, and what comes later is in the next") {
  Puppet puppet(up_to(8));
  TestRequest a(1), b(2, 3), c(3), late(4), later(5);
  puppet.submit(a, b, c);
  CHECK(puppet.launched.size() == 1);
  puppet.when_running = [&] {
    puppet.submit(late, later);
    CHECK(puppet.launched.empty());  // one replica, and it is busy
  };
  CHECK(puppet.run_next() == 5);
  puppet.when_running = nullptr;
  CHECK(done(a, b, c));
  CHECK(a.output_values() == std::vector<float>(2, 2));
  CHECK(b.output_values() == std::vector<float>(6, 4));
  CHECK(c.output_values() == std::vector<float>(2, 6));
  // Views of one tensor, not copies.
  CHECK(a.output().storage().get() == c.output().storage().get());
  CHECK(b.output().data_as<float>() == a.output().data_as<float>() + 2);
  // One request carries the run's numbers.
  CHECK(a.run_rows == 5);
  CHECK(b.run_rows == -1);
  CHECK(c.run_rows == -1);
  CHECK(b.info.weight_version == a.info.weight_version);
  CHECK_FALSE(late.done());
  REQUIRE(puppet.launched.size() == 1);
  CHECK(puppet.run_next() == 2);
  CHECK(done(late, later));
  CHECK(puppet.runs == 2);
}

TEST_CASE("batcher: replicas share what waits") {
  Puppet puppet(up_to(8), 2);
  std::deque<TestRequest> requests;
  for (int i = 0; i < 4; ++i) puppet.batcher.submit(requests.emplace_back(static_cast<float>(i)));
  CHECK(puppet.launched.size() == 2);
  puppet.when_running = [&] {
    puppet.when_running = nullptr;
    CHECK(puppet.run_next() == 2);  // the other replica, at the same time
  };
  CHECK(puppet.run_next() == 2);
  CHECK(puppet.launched.empty());
  for (const TestRequest& request : requests) CHECK(request.done());
}

TEST_CASE("batcher: a full queue refuses at once, and requests that are about to start do not count") {
  BatchPolicy policy = up_to(1);
  policy.queue = 2;
  Puppet puppet(policy);
  std::deque<TestRequest> requests;
  for (int i = 0; i < 3; ++i) puppet.batcher.submit(requests.emplace_back(0));
  TestRequest refused(9);
  CHECK_THROWS_WITH(puppet.batcher.submit(refused),
                    "Exceeds maximum queue size: model 'puppet' has 2 requests waiting");
  CHECK(puppet.batcher.waiting() == 3);
  while (!puppet.launched.empty()) puppet.run_next();
  puppet.batcher.submit(refused);
  puppet.run_next();
  CHECK(refused.done());
  for (const TestRequest& request : requests) CHECK(request.done());
}

TEST_CASE("batcher: no queue at all still serves what a replica is free for") {
  BatchPolicy policy = up_to(1);
  policy.queue = 0;
  Puppet puppet(policy);
  TestRequest first(1), second(2);
  puppet.batcher.submit(first);
  CHECK_THROWS_AS(puppet.batcher.submit(second), Error);
  puppet.run_next();
  puppet.batcher.submit(second);
  puppet.run_next();
  CHECK(second.done());
}

TEST_CASE("batcher: a cancelled request is told of nothing, and its run goes on without it") {
  Puppet puppet(up_to(8));
  TestRequest a(1), b(2), c(3);
  puppet.submit(a, b, c);
  CHECK(puppet.batcher.cancel(b));
  CHECK(puppet.batcher.waiting() == 2);
  puppet.when_running = [&] { CHECK_FALSE(puppet.batcher.cancel(a)); };
  CHECK(puppet.run_next() == 2);
  CHECK(done(a, c));
  CHECK(b.times_finished() == 0);
  CHECK_FALSE(puppet.batcher.cancel(a));
  CHECK_FALSE(puppet.batcher.cancel(b));
}

TEST_CASE("batcher: a run of which all requests are cancelled does not happen") {
  Puppet puppet(up_to(8));
  TestRequest a(1), b(2);
  puppet.batcher.submit(a);
  CHECK(puppet.batcher.cancel(a));
  REQUIRE(puppet.launched.size() == 1);
  CHECK(puppet.run_next() == 0);
  CHECK(puppet.runs == 0);
  puppet.batcher.submit(b);
  CHECK(puppet.run_next() == 1);
  CHECK(b.done());
}

TEST_CASE("batcher: where a batch fails, its halves run by themselves") {
  Puppet puppet(up_to(8));
  TestRequest good(1), bad(-1), fine(2);
  puppet.submit(good, bad, fine);
  puppet.fail_if = has_negative;
  CHECK(puppet.run_next() == 3);
  CHECK(good.times_finished() + bad.times_finished() + fine.times_finished() == 0);
  CHECK(puppet.batcher.waiting() == 3);
  for (const int64_t rows : {1, 2, 1, 1}) {
    REQUIRE_FALSE(puppet.launched.empty());
    CHECK(puppet.run_next() == rows);
  }
  CHECK(puppet.launched.empty());
  CHECK(done(good, bad, fine));
  CHECK(good.output_values() == std::vector<float>(2, 2));
  CHECK(fine.output_values() == std::vector<float>(2, 4));
  CHECK(good.error == nullptr);
  CHECK(text_of(bad.error) == "MODEL_FAILED: told to fail");
  CHECK(bad.run_rows == -1);
  CHECK(good.run_rows == 1);
}

TEST_CASE("batcher: one bad request among 64 costs 13 runs, and no newcomer shares them") {
  Puppet puppet(up_to(64));
  std::deque<TestRequest> requests;
  for (int i = 0; i < 64; ++i) requests.emplace_back(i == 41 ? -1.0F : static_cast<float>(i));
  for (TestRequest& request : requests) puppet.batcher.submit(request);
  TestRequest newcomer(100);
  puppet.fail_if = [&](RunRequest& run) {
    const float* data = run.inputs[0].data_as<float>();
    const bool bad = has_negative(run);
    if (bad) CHECK(std::none_of(data, data + run.inputs[0].numel(), [](float x) { return x == 100; }));
    return bad;
  };
  CHECK(puppet.run_next() == 64);
  puppet.batcher.submit(newcomer);
  while (!requests[41].done()) REQUIRE(puppet.run_next() > 0);
  while (!puppet.launched.empty()) REQUIRE(puppet.run_next() > 0);
  CHECK(puppet.runs == 14);  // 13 for the failed rows, one for the newcomer
  CHECK(newcomer.output_values() == std::vector<float>(2, 200));
  for (int i = 0; i < 64; ++i) {
    REQUIRE(requests[static_cast<size_t>(i)].done());
    if (i == 41)
      CHECK(text_of(requests[41].error) == "MODEL_FAILED: told to fail");
    else
      CHECK(requests[static_cast<size_t>(i)].output_values() == std::vector<float>(2, 2.0F * static_cast<float>(i)));
  }
}

// Requests of a failed run had started in time, so they run again even if their timeout is over by then.
TEST_CASE("batcher: those of a failed run are not late though their time of waiting is over") {
  BatchPolicy policy = up_to(8);
  policy.timeout = 5ms;
  Puppet puppet(policy);
  TestRequest good(1), bad(-1), fine(2);
  puppet.submit(good, bad, fine);
  puppet.fail_if = [](RunRequest& run) {
    std::this_thread::sleep_for(10ms);
    return has_negative(run);
  };
  while (!puppet.launched.empty()) puppet.run_next();
  CHECK(good.output_values() == std::vector<float>(2, 2));
  CHECK(fine.output_values() == std::vector<float>(2, 4));
  CHECK(text_of(bad.error) == "MODEL_FAILED: told to fail");
}

TEST_CASE("batcher: an output without a row for each input is not taken apart") {
  Puppet puppet(up_to(8));
  TestRequest a(1), b(2);
  puppet.submit(a, b);
  RunRequest& run = *puppet.launched.front();
  puppet.launched.pop_front();
  CHECK(run.starting());
  run.preparing();
  run.outputs[0] = Tensor::empty(std::array<int64_t, 2>{1, 2}, DType::kFloat32);
  CHECK_THROWS_WITH(run.ran(), "output 0 of a batch of 2 rows does not have a row for each: float32 [1, 2]");
  run.error = std::make_exception_ptr(Error(ErrorCode::kModelFailed, "as above"));
  run.finished();
  while (!puppet.launched.empty()) CHECK(puppet.run_next() == 1);
  CHECK(done(a, b));
  CHECK(a.error == nullptr);
}

TEST_CASE("batcher: a run that cannot be launched tells all that wait") {
  TimerQueue clock;
  InlinePolicy place(0ns, true);
  Batcher batcher(
      "gone", up_to(8),
      [](RunRequest& run) {
        run.error = std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the model is being unloaded"));
        run.finished();
      },
      clock, place, 1);
  TestRequest a(1), b(2);
  batcher.submit(a);
  batcher.submit(b);
  CHECK(done(a, b));
  CHECK(text_of(a.error) == "UNAVAILABLE: the model is being unloaded");
  CHECK(batcher.waiting() == 0);
}

TEST_CASE("batcher: with a delay nothing is launched until the batch is full") {
  BatchPolicy policy = up_to(3);
  policy.delay = 24h;
  Puppet puppet(policy);
  TestRequest a(1), b(2), c(3), d(4);
  puppet.submit(a, b);
  CHECK(puppet.launched.empty());
  puppet.batcher.submit(c);
  REQUIRE(puppet.launched.size() == 1);
  puppet.batcher.submit(d);
  CHECK(puppet.run_next() == 3);
  CHECK(puppet.launched.empty());
  CHECK_FALSE(d.done());
  CHECK(puppet.batcher.cancel(d));
}

TEST_CASE("batcher: when sharing ends, those that wait for company run alone at once, and so do later ones") {
  BatchPolicy policy = up_to(4);
  policy.delay = 24h;
  Puppet puppet(policy);
  TestRequest a(1), b(2), c(3), d(4);
  puppet.submit(a, b);
  REQUIRE(puppet.launched.empty());
  puppet.batcher.end_sharing();
  CHECK(puppet.run_next() == 1);
  CHECK(puppet.run_next() == 1);
  CHECK(done(a, b));
  puppet.submit(c, d);
  CHECK(puppet.run_next() == 1);
  CHECK(puppet.run_next() == 1);
  CHECK(puppet.launched.empty());
  CHECK(done(c, d));
  CHECK(b.output_values() == std::vector<float>(2, 4));
}

TEST_CASE("batcher: a run that has begun goes on when sharing ends, and its halves run alone if it fails") {
  Puppet puppet(up_to(4));
  TestRequest a(1), b(2), c(3), d(4);
  puppet.submit(a, b, c, d);
  puppet.when_running = [&] {
    puppet.when_running = nullptr;
    puppet.batcher.end_sharing();
  };
  puppet.fail_if = [&](const RunRequest& run) { return run.inputs[0].size(0) > 1; };
  CHECK(puppet.run_next() == 4);
  for (int i = 0; i < 4; ++i) CHECK(puppet.run_next() == 1);
  CHECK(done(a, b, c, d));
  CHECK(puppet.launched.empty());
}

TEST_CASE("batcher: when a delay is over, what is there runs") {
  BatchPolicy policy = up_to(3);
  policy.delay = 1ms;
  TimerQueue clock;
  InlinePolicy place(0ns, true);
  std::atomic<RunRequest*> launched{nullptr};
  Batcher batcher(
      "m", policy,
      [&](RunRequest& run) {
        launched = &run;
        launched.notify_one();
      },
      clock, place, 1);
  TestRequest a(1);
  batcher.submit(a);
  launched.wait(nullptr);  // by the alarm
  RunRequest& run = *launched;
  CHECK(run.starting());
  double_all(run);
  run.ran();
  run.finished();
  CHECK(a.done());
}

TEST_CASE("batcher: a request whose time is over is told so while the replica is busy") {
  struct Told final : QueuedRequest {
    void finished() noexcept override {
      over = true;
      over.notify_one();
    }
    std::atomic<bool> over{false};
  } late;
  Puppet puppet(up_to(1));
  TestRequest first(1), example(2);
  late.inputs = example.inputs;
  late.outputs = example.outputs;
  late.timeout = 1ms;
  puppet.batcher.submit(first);
  puppet.when_running = [&] {
    puppet.batcher.submit(late);
    late.over.wait(false);
  };
  puppet.run_next();
  CHECK(text_of(late.error).starts_with("DEADLINE_EXCEEDED: Request timeout expired: waited "));
  CHECK(first.done());
  CHECK(puppet.launched.empty());
}

TEST_CASE("batcher: places are the replicas', whoever runs") {
  Puppet puppet(up_to(8), 2);
  REQUIRE(puppet.batcher.acquire_permit());
  TestRequest a(1), b(2);
  puppet.submit(a, b);
  CHECK(puppet.launched.size() == 1);
  CHECK_FALSE(puppet.batcher.acquire_permit());
  puppet.batcher.release_permit();
  CHECK(puppet.launched.size() == 2);
  while (!puppet.launched.empty()) puppet.run_next();
  CHECK(done(a, b));
}

TEST_CASE("batcher: replicas come and go") {
  Puppet puppet(up_to(1), 1);
  std::deque<TestRequest> requests;
  for (int i = 0; i < 6; ++i) puppet.batcher.submit(requests.emplace_back(0));
  CHECK(puppet.launched.size() == 1);
  puppet.batcher.reserve(3);
  puppet.batcher.set_replicas(3);
  CHECK(puppet.launched.size() == 3);
  puppet.batcher.set_replicas(1);
  puppet.run_next();
  puppet.run_next();
  CHECK(puppet.launched.size() == 1);
  while (!puppet.launched.empty()) puppet.run_next();
  for (const TestRequest& request : requests) CHECK(request.done());
}

TEST_CASE("batcher: many threads, replicas and cancellations: each request is answered once, with its own rows") {
  // Real lanes: a thread per replica with a queue.
  struct Lanes {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<RunRequest*> runs;
    bool stopping = false;
    void loop() {
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [&] { return stopping || !runs.empty(); });
        if (runs.empty()) return;
        RunRequest& run = *runs.front();
        runs.pop_front();
        lock.unlock();
        as_lane(run, [&] { double_all(run); });
        lock.lock();
      }
    }
  } lanes;
  class Counted final : public TestRequest {
   public:
    Counted() : TestRequest(0) {}
    void set(float value) { inputs[0].data_as<float>()[0] = inputs[0].data_as<float>()[1] = value; }
    float answer() const { return output().data_as<float>()[1]; }
    void finished() noexcept override {
      over.store(true);
      over.notify_one();
    }
    std::atomic<bool> over{false};
  };
  constexpr int kThreads = 4, kRequests = 2000;
  TimerQueue clock;
  InlinePolicy place(0ns, true);
  std::atomic<int> answered{0}, cancelled{0}, late{0}, wrong{0};
  std::atomic<int64_t> rows{0};
  {
    BatchPolicy policy = up_to(8);
    policy.delay = std::nullopt;
    policy.priority_levels = 3;
    Batcher batcher(
        "m", policy,
        [&](RunRequest& run) {
          const std::lock_guard lock(lanes.mutex);
          lanes.runs.push_back(&run);
          lanes.changed.notify_one();
        },
        clock, place, 2);
    std::vector<std::thread> lane_threads, threads;
    for (int i = 0; i < 3; ++i) lane_threads.emplace_back([&] { lanes.loop(); });
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        std::deque<Counted> window(8);
        const auto collect = [&](Counted& request) {
          request.over.wait(false);
          if (request.error) {
            ++late;
          } else {
            ++answered;
            rows += std::max<int64_t>(request.run_rows, 0);
          }
        };
        for (int i = 0; i < kRequests; i += 8) {
          for (size_t k = 0; k < window.size(); ++k) {
            window[k].over = false;
            window[k].set(static_cast<float>(t * kRequests + i) + static_cast<float>(k));
            window[k].priority = random() % 4;
            window[k].timeout = random() % 16 == 0 ? 1us : 0us;
            batcher.submit(window[k]);
          }
          for (size_t k = 0; k < window.size(); ++k) {
            if (random() % 8 == 0 && batcher.cancel(window[k])) {
              ++cancelled;
              continue;
            }
            collect(window[k]);
            const float number = static_cast<float>(t * kRequests + i) + static_cast<float>(k);
            if (!window[k].error && window[k].answer() != 2 * number) ++wrong;
          }
          if (t == 0 && i % 512 == 0) {
            batcher.reserve(3);
            batcher.set_replicas(1 + (i / 512) % 3);
          }
          if (t == 1 && batcher.acquire_permit()) batcher.release_permit();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(batcher.waiting() == 0);
    {
      const std::lock_guard lock(lanes.mutex);
      lanes.stopping = true;
      lanes.changed.notify_all();
    }
    for (std::thread& thread : lane_threads) thread.join();
  }
  CHECK(answered + cancelled + late == kThreads * kRequests);
  CHECK(wrong == 0);
  CHECK(rows == answered);
}

TEST_CASE("batcher: a request that nobody waits for is left out of the run") {
  Puppet puppet(up_to(8));
  TestRequest first(1), gone(2), kept(3), last(4);
  puppet.submit(first, gone, kept, last);
  gone.give_up();
  last.give_up();
  CHECK(puppet.run_next() == 2);
  CHECK(done(first, gone, kept, last));
  CHECK(kept.output_values() == std::vector<float>(2, 6));
  CHECK(text_of(gone.error) == "CANCELLED: nobody waits for the request to model 'puppet' any more");
  CHECK(text_of(last.error) == text_of(gone.error));
  CHECK(puppet.batcher.waiting() == 0);
  // The next submit() begins anew.
  puppet.batcher.submit(gone);
  CHECK(puppet.run_next() == 1);
  CHECK(gone.error == nullptr);
  // If nobody waits for any of them, nothing runs.
  puppet.batcher.submit(gone);
  gone.give_up();
  CHECK(puppet.run_next() == 0);
  CHECK(puppet.runs == 2);
  CHECK(puppet.batcher.waiting() == 0);
}

TEST_CASE("batcher: runs that end while they are launched need no deeper stack for being many") {
  TimerQueue clock;
  InlinePolicy place(0ns, true);
  int64_t depth = 0, deepest = 0, held = 1;
  std::deque<BatchRun*> waiting;
  const auto perform = [&](BatchRun& run) {
    deepest = std::max(deepest, ++depth);
    as_lane(run, [&] { double_all(run); });
    --depth;
  };
  Batcher batcher(
      "here", up_to(1),
      [&](BatchRun& run) {
        if (held)
          waiting.push_back(&run);
        else
          perform(run);
      },
      clock, place, 1);
  std::deque<TestRequest> requests;
  for (int i = 0; i < 500; ++i) batcher.submit(requests.emplace_back(static_cast<float>(i)));
  REQUIRE(waiting.size() == 1);
  held = 0;
  perform(*waiting.front());
  for (const TestRequest& request : requests) CHECK(request.done());
  CHECK(deepest == 2);
}

}  // namespace sconce::server::scheduling
