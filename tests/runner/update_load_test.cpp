// Updates under load: no request fails, no answer mixes two sets, and every answer is that of the weight version it
// names.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "src/runner/runner.h"
#include "tests/runner/counted_memory.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

struct Version {
  std::vector<float> w, b;
  std::string label;
};

std::vector<float> values(int64_t seed) {
  std::vector<float> result;
  for (int64_t i = 0; i < 4; ++i) result.push_back(static_cast<float>((seed * 7 + i * 13) % 1000));
  return result;
}

}  // namespace

TEST_CASE("update load: 64 clients, 1,000 updates, 4 replicas") {
  constexpr int kClients = 64, kUpdates = 1'000;
  Loaded loaded("fake_model", 4);
  Model& model = *loaded.model;
  // By weight version; written before it is published.
  std::vector<Version> versions(2 * kUpdates + 2);
  versions[1] = {{1, 2, 3, 4}, {0, 10, 20, 30}, ""};

  struct Submitted final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done.store(true);
      done.notify_one();
    }
  };
  std::atomic<bool> stop{false};
  std::atomic<int64_t> answers{0}, failed{0}, mixed{0}, mislabelled{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < kClients; ++t)
    clients.emplace_back([&, t] {
      uint64_t newest = 0;
      while (!stop) {
        const float x = static_cast<float>(t % 5);
        std::vector<Tensor> inputs{filled({2, 4}, x)}, outputs(1);
        RunInfo info;
        if (t % 2 == 0) {
          if (code_of([&] { info = model.run(inputs, outputs); })) ++failed;
        } else {
          Submitted request;
          request.inputs = inputs;
          request.outputs = outputs;
          request.affinity = static_cast<uint64_t>(t % 3);
          model.submit(request);
          request.done.wait(false);
          if (request.error) ++failed;
          info = request.info;
        }
        ++answers;
        if (!outputs[0].defined() || info.weight_version >= versions.size()) {
          ++mixed;
          continue;
        }
        const Version& version = versions[info.weight_version];
        const float* y = outputs[0].data_as<float>();
        for (size_t i = 0; i < 8; ++i)
          if (y[i] != x * version.w[i % 4] + version.b[i % 4]) {
            ++mixed;
            break;
          }
        if ((info.label ? *info.label : "") != version.label) ++mislabelled;
        // The weight versions that one client sees never decrease.
        if (info.weight_version < newest) ++mixed;
        newest = info.weight_version;
      }
    });

  Version now = versions[1], before;
  uint64_t weight_version = 1;
  for (int i = 1; i <= kUpdates; ++i) {
    Version next = now;
    next.label = i % 3 == 0 ? "" : "version " + std::to_string(i);
    std::vector<Values> changed;
    if (i % 2 == 0 || i % 5 == 0) changed.push_back({"scale.w", next.w = values(i)});
    if (i % 2 == 0 || i % 5 != 0) changed.push_back({"scale.b", next.b = values(i + 500)});
    versions[weight_version + 1] = next;
    stage(model, changed, {.full = changed.size() == 2, .label = next.label});
    REQUIRE(model.commit_weights() == weight_version + 1);
    ++weight_version;
    before = std::exchange(now, next);
    if (i % 10 == 0) {
      versions[weight_version + 1] = before;
      REQUIRE(model.rollback_weights() == weight_version + 1);
      ++weight_version;
      std::swap(before, now);
    }
    if (i % 7 == 0) model.release_previous();
  }
  stop = true;
  for (auto& client : clients) client.join();
  CHECK(answers > 1'000);
  CHECK(failed == 0);
  CHECK(mixed == 0);
  CHECK(mislabelled == 0);
  model.release_previous();
  CHECK(loaded.knobs->live_containers == 4);
}

namespace {

// A request for a lane. `lane` gets the counts of the lane's thread at the end of the run.
struct Counting final : RunRequest {
  std::vector<Tensor> in{filled({2, 4}, 1)}, out{1};
  Counts lane;
  std::atomic<bool> done{false};
  Counting() {
    inputs = in;
    outputs = out;
  }
  void finished() noexcept override {
    lane = counts();
    done.store(true, std::memory_order_release);
  }
};

}  // namespace

TEST_CASE("update load: a request through a lane takes no lock and no memory on either thread") {
  Loaded loaded("fake_model", 1);
  Model& model = *loaded.model;
  const auto check = [&] {
    Counting request;
    const auto run = [&] {
      request.done = false;
      model.submit(request);
      while (!request.done.load(std::memory_order_acquire)) std::this_thread::yield();
      REQUIRE(!request.error);
    };
    for (int i = 0; i < 4; ++i) run();
    const Counts submitter = counts(), lane = request.lane;
    for (int i = 0; i < 100; ++i) run();
    for (const auto& [before, after] : {std::pair(submitter, counts()), std::pair(lane, request.lane)}) {
      CHECK(after.locks == before.locks);
      CHECK(after.mappings == before.mappings);
#ifndef __SANITIZE_ADDRESS__  // where handles are not used again
      CHECK(after.allocations == before.allocations);
#endif
    }
    CHECK(lane.allocations > 0);  // the counts are the lane's, which has allocated before
  };
  check();
  stage(model, {{"scale.w", {1, 1, 1, 1}}}, {.full = false, .label = "a label that no small string holds"});
  check();  // one is staged
  model.commit_weights();
  check();
}

TEST_CASE("update load: a request takes no lock and no memory, updates or not") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  const auto cost = [&] {
    const std::vector<Tensor> inputs{filled({2, 4}, 1)};
    std::vector<Tensor> outputs(1);
    for (int i = 0; i < 4; ++i) model.run(inputs, outputs);
    const Counts before = counts();
    for (int i = 0; i < 100; ++i) model.run(inputs, outputs);
    const Counts after = counts();
    return Counts{after.allocations - before.allocations, after.mappings - before.mappings, after.locks - before.locks};
  };
  const auto check = [&] {
    const Counts spent = cost();
    CHECK(spent.locks == 0);
    CHECK(spent.mappings == 0);
#ifndef __SANITIZE_ADDRESS__  // where handles are not used again
    CHECK(spent.allocations == 0);
#endif
  };
  check();
  stage(model, {{"scale.w", {1, 1, 1, 1}}}, {.full = false, .label = "a label that no small string holds"});
  check();  // one is staged
  model.commit_weights();
  check();
  const auto update = model.begin_update({.full = false});
  fill(*update, {{"scale.w", {2, 2, 2, 2}}});
  check();  // one is under way
}
