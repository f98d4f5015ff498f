#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "src/device/threads.h"
#include "src/runner/replicas/replica_slots.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

int replica_of(Model& model, uint64_t affinity) {
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  return model.run(inputs, outputs, affinity).replica;
}

}  // namespace

TEST_CASE("replicas: are added and removed, and their places are taken again") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  CHECK(model.add_replica(Device{}) == 1);
  CHECK(model.add_replica(Device{}, {0}) == 2);
  CHECK(loaded.knobs->live_containers == 3);
  model.remove_replica(1);
  CHECK(loaded.knobs->live_containers == 2);
  CHECK(code_of([&] { model.remove_replica(1); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { model.remove_replica(-1); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { model.remove_replica(77); }) == ErrorCode::kNotFound);
  model.remove_replica(0);
  CHECK(code_of([&] { model.remove_replica(2); }) == ErrorCode::kFailedPrecondition);
  RunInfo info;
  CHECK(run(model, 3, 4, &info) == stored(3));
  CHECK(info.replica == 2);
  CHECK(model.add_replica(Device{}) == 0);
  const auto replicas = model.replicas();
  REQUIRE(replicas.size() == 2);
  CHECK(replicas[0].cpus.empty());
  CHECK(replicas[1].cpus == std::vector<int>{0});
  CHECK(code_of([&] { model.add_replica(Device{}, {100000}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { model.add_replica(Device{DeviceType::kCuda, 0}); }) == ErrorCode::kInvalidArgument);
  CHECK(model.replicas().size() == 2);
}

TEST_CASE("replicas: one that cannot be made changes nothing") {
  Loaded loaded("fake_folded");
  loaded.knobs->fail_in_creates = 1;
  CHECK(code_of([&] { loaded.model->add_replica(Device{}); }) == ErrorCode::kModelFailed);
  loaded.knobs->fail_in_folds = 1;
  CHECK(code_of([&] { loaded.model->add_replica(Device{}); }) == ErrorCode::kModelFailed);
  CHECK(loaded.model->replicas().size() == 1);
  CHECK(loaded.knobs->live_containers == 1);
  CHECK(run(*loaded.model, 3)[0] == 6);
}

TEST_CASE("replicas: added and removed in the middle of an update") {
  Loaded loaded("fake_folded");
  Model& model = *loaded.model;
  const auto update = model.begin_update({});
  model.add_replica(Device{});  // while bytes arrive
  fill(*update, {{"scale.w", {5, 5, 5, 5}}, {"scale.b", {0, 0, 0, 0}}});
  update->finish();
  CHECK(loaded.knobs->live_containers == 4);
  model.add_replica(Device{});  // while it waits for the commit
  CHECK(loaded.knobs->live_containers == 6);
  model.remove_replica(1);
  CHECK(loaded.knobs->live_containers == 4);
  const int64_t creates = loaded.knobs->creates;
  model.commit_weights();
  CHECK(loaded.knobs->creates == creates);
  for (uint64_t key = 1; key < 20; ++key) replica_of(model, key);
  CHECK(run(model, 3)[0] == 30);
  model.add_replica(Device{});  // while there is a previous set
  CHECK(model.rollback_weights() == 3);
  for (int i = 0; i < 6; ++i) CHECK(run(model, 3)[0] == 6);
}

TEST_CASE("replicas: one key, one replica; only the keys of one that goes move") {
  Loaded loaded("fake_model", 4);
  Model& model = *loaded.model;
  std::vector<int> before(200);
  std::set<int> used;
  for (uint64_t key = 1; key < before.size(); ++key) {
    before[key] = replica_of(model, key);
    used.insert(before[key]);
    CHECK(replica_of(model, key) == before[key]);
  }
  CHECK(used.size() == 4);
  model.remove_replica(2);
  for (uint64_t key = 1; key < before.size(); ++key) {
    const int now = replica_of(model, key);
    CHECK(now != 2);
    if (before[key] != 2) CHECK(now == before[key]);
  }
}

TEST_CASE("replicas: each keeps the buffers that it writes") {
  Loaded loaded("fake_state", 2);
  Model& model = *loaded.model;
  std::vector<uint64_t> key(2);
  for (uint64_t k = 1; key[0] == 0 || key[1] == 0; ++k) key[static_cast<size_t>(replica_of(model, k))] = k;
  publish(model, {{"steps", {0}}}, {.full = false});
  const auto answer = [&](uint64_t affinity) {
    const std::vector<Tensor> inputs{filled({1, 4}, 0)};
    std::vector<Tensor> outputs(1);
    model.run(inputs, outputs, affinity);
    return outputs[0].data_as<float>()[0];
  };
  CHECK(answer(key[0]) == 0);
  CHECK(answer(key[0]) == 1);
  CHECK(answer(key[0]) == 2);
  CHECK(answer(key[1]) == 0);
  CHECK(answer(key[0]) == 3);
}

TEST_CASE("replicas: pinned ones run on their own cores, whoever asks") {
  TempFolder folder;
  fake::write_directory(folder.path() / "package");
  LoadOptions options;
  options.cpu_set = {0};
  const auto model = Model::load(Package::open(folder.path() / "package"), options);
  CHECK(model->replicas()[0].cpus == std::vector<int>{0});
  RunInfo info;
  CHECK(run(*model, 3, 4, &info) == stored(3));
  CHECK(info.queue.count() > 0);  // time in the lane's queue was measured
}

TEST_CASE("replicas: folding uses the threads and the cores of the replica, and leaves the caller's") {
  TempFolder folder;
  fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_folded")}});
  LoadOptions options;
  options.threads = 3;
  const int before = kernel_threads();
  const auto model = Model::load(Package::open(folder.path() / "package"), options);
  FakeKnobs* const knobs = fake::loaded().back();
  CHECK(knobs->fold_threads == 3);
  CHECK(kernel_threads() == before);
  cpu_set_t mine;
  REQUIRE(sched_getaffinity(0, sizeof mine, &mine) == 0);
  CHECK(knobs->fold_cpus == CPU_COUNT(&mine));
  model->add_replica(Device{}, {0});
  CHECK(knobs->fold_cpus == 1);
  CHECK(knobs->fold_threads == 3);
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&mine, &after));
}

TEST_CASE("replicas: a model says where it runs") {
  Loaded m("fake_model");
  CHECK(m.model->runs_on_caller());
  const int pinned = m.model->add_replica(Device{}, {0});
  CHECK_FALSE(m.model->runs_on_caller());
  m.model->remove_replica(pinned);
  CHECK(m.model->runs_on_caller());
  LoadOptions on_cores, on_threads;
  on_cores.cpu_set = {0};
  on_threads.threads = 2;
  CHECK_FALSE(Loaded("fake_model", 1, true, on_cores).model->runs_on_caller());
  CHECK_FALSE(Loaded("fake_model", 1, true, on_threads).model->runs_on_caller());
}

TEST_CASE("replicas: come and go under load; every request is answered") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> answers{0}, wrong{0};
  struct Submitted final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done = true;
      done.notify_one();
    }
  };
  std::vector<std::thread> clients;
  for (uint64_t t = 0; t < 4; ++t)
    clients.emplace_back([&, t] {
      for (uint64_t n = 0; !stop; ++n) {
        std::vector<Tensor> inputs{filled({2, 4}, 3)}, outputs(1);
        if (t % 2 == 0) {
          model.run(inputs, outputs, n % 7);
        } else {
          Submitted request;
          request.inputs = inputs;
          request.outputs = outputs;
          request.affinity = n % 5;
          model.submit(request);
          request.done.wait(false);
          if (request.error) ++wrong;
        }
        for (int i = 0; i < 4; ++i)
          if (!outputs[0].defined() || outputs[0].data_as<float>()[i] != fake::expected(3, i)) ++wrong;
        ++answers;
      }
    });
  std::vector<int> added;
  for (int i = 0; i < 300 || answers < 2000; ++i) {
    added.push_back(model.add_replica(Device{}));
    if (added.size() > 3) {
      model.remove_replica(added[static_cast<size_t>(i) % added.size()]);
      added.erase(added.begin() + i % static_cast<int>(added.size()));
    }
  }
  stop = true;
  for (auto& client : clients) client.join();
  CHECK(answers > 0);
  CHECK(wrong == 0);
}

// A commit waits for runs on the previous set. Reading metrics meanwhile must not wait.
TEST_CASE("replicas: are described while a commit waits for a run") {
  TempFolder folder;
  const auto held = folder.path() / "held";
  std::ofstream(held).put('x');
  setenv("FAKE_MODEL_HOLD", held.c_str(), 1);
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  std::thread running([&] { run(model, 3); });
  while (loaded.knobs->running == 0) std::this_thread::yield();
  std::thread committing([&] {
    stage(model, {{"scale.w", {1, 2, 3, 4}}}, {.full = false});
    model.commit_weights();
  });
  while (model.weight_version() == 1)
    std::this_thread::yield();  // the set is published, and the commit waits for the run
  std::atomic<bool> described{false};
  std::thread reading([&] {
    CHECK(model.replicas().size() == 1);
    CHECK(model.weight_sets().size() == 2);
    described = true;
  });
  // A time limit, so that the test ends if reading blocks.
  for (int i = 0; i < 1000 && !described; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(described);
  CHECK(loaded.knobs->running == 1);
  std::filesystem::remove(held);
  running.join();
  committing.join();
  reading.join();
  unsetenv("FAKE_MODEL_HOLD");
}
