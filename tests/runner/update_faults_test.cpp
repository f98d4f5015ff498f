// If an update fails at any step, answers stay the same bit for bit, and nothing is leaked.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "src/runner/update.h"
#include "tests/runner/counted_memory.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

const std::vector<Values> kNew{{"scale.w", {9, 9, 9, 9}}, {"scale.b", {8, 8, 8, 8}}};

// Records what a model answers and holds; check() compares.
struct Standing {
  explicit Standing(Loaded& l) : loaded(l), answered(answers()), sets(l.model->weight_sets()) {
    weight_version = l.model->weight_version();
    containers = l.knobs->live_containers;
    tensors = l.knobs->live_tensors;
  }
  std::vector<std::vector<float>> answers() const {
    std::vector<std::vector<float>> result;
    for (const ReplicaInfo& replica : loaded.model->replicas()) {
      uint64_t key = 1;
      for (RunInfo info;; ++key) {
        const std::vector<Tensor> inputs{filled({2, 4}, 3.25F)};
        std::vector<Tensor> outputs(1);
        info = loaded.model->run(inputs, outputs, key);
        if (info.replica != replica.index) continue;
        const float* y = outputs[0].data_as<float>();
        result.emplace_back(y, y + 8);
        break;
      }
    }
    return result;
  }
  void check() const {
    CHECK(loaded.model->weight_version() == weight_version);
    CHECK(answers() == answered);
    CHECK(loaded.knobs->live_containers == containers);
    CHECK(loaded.knobs->live_tensors == tensors);
    CHECK(loaded.model->weight_sets().size() == sets.size());
  }

  Loaded& loaded;
  std::vector<std::vector<float>> answered;
  std::vector<WeightSetInfo> sets;
  uint64_t weight_version;
  int64_t containers, tensors;
};

void drop_staged(Model& model) {
  for (const WeightSetInfo& set : model.weight_sets())
    if (set.state == WeightState::kStaged) model.abort_weights();
}

// Stages repeatedly: first the first allocation fails, then the second, until no allocation fails.
void stage_with_every_allocation_failing(Loaded& loaded) {
  Model& model = *loaded.model;
  const std::vector<WeightEntry> entries{{"scale.w", DType::kFloat32, {4}}, {"scale.b", DType::kFloat32, {4}}};

  const Standing before(loaded);
  for (int64_t n = 1;; ++n) {
    REQUIRE(n < 20'000);
    UpdateOptions options{.label = "a label that no small string holds"};
    std::optional<ErrorCode> code;
    bool failed;
    {
      const FailingMemory memory(n);
      code = code_of([&] {
        const auto update = model.begin_update(std::move(options));
        update->declare(entries);
        for (size_t i = 0; i < 2; ++i) {
          std::memset(update->memory(i).data(), 0, 16);
          update->complete(i);
        }
        update->finish();
      });
      failed = memory.failed();
    }
    CAPTURE(n);
    // Some failing allocations are harmless.
    if (code) CHECK(code == ErrorCode::kOutOfMemory);
    drop_staged(model);
    before.check();
    if (failed) continue;
    CHECK(!code);
    CHECK(n > 20);  // there were allocations to fail
    return;
  }
}

}  // namespace

TEST_CASE("update faults: a fold or a container that fails, on any replica") {
  Loaded loaded("fake_folded", 3);
  Model& model = *loaded.model;
  const Standing before(loaded);
  for (auto* knob : {&loaded.knobs->fail_in_folds, &loaded.knobs->fail_in_creates})
    for (int64_t replica = 1; replica <= 3; ++replica) {
      *knob = replica;
      CHECK(code_of([&] { stage(model, kNew, {}); }) == ErrorCode::kModelFailed);
      before.check();
    }
}

TEST_CASE("update faults: names, dtypes, shapes, and values that never come") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  stage(model, {{"scale.w", {4, 3, 2, 1}}}, {.full = false});
  model.commit_weights();
  const Standing before(loaded);
  const auto declared = [&](std::vector<WeightEntry> entries, bool full = false) {
    const auto code = code_of([&] { model.begin_update({.full = full})->declare(entries); });
    before.check();  // the previous set, too
    return code;
  };
  CHECK(declared({{"scale", DType::kFloat32, {4}}}) == ErrorCode::kNotFound);
  CHECK(declared({{"", DType::kFloat32, {4}}}) == ErrorCode::kNotFound);
  CHECK(declared({{"scale.w", DType::kFloat64, {4}}}) == ErrorCode::kInvalidArgument);
  CHECK(declared({{"scale.w", DType::kFloat32, {4, 1}}}) == ErrorCode::kInvalidArgument);
  CHECK(declared({{"scale.w", DType::kFloat32, {INT64_MAX}}}) == ErrorCode::kInvalidArgument);
  CHECK(declared({{"scale.w", DType::kFloat32, {4}}}, true) == ErrorCode::kInvalidArgument);
  model.release_previous();
  const Standing alone(loaded);
  {
    const auto update = model.begin_update({});
    const std::vector<WeightEntry> entries{{"scale.w", DType::kFloat32, {4}}, {"scale.b", DType::kFloat32, {4}}};
    update->declare(entries);
    update->memory(0);
    update->complete(0);
    CHECK(code_of([&] { update->finish(); }) == ErrorCode::kFailedPrecondition);
    CHECK(code_of([&] { update->complete(1); }) == ErrorCode::kFailedPrecondition);
  }
  alone.check();
}

TEST_CASE("update faults: no memory at any step of a staging") {
  for (const char* name : {"fake_folded", "fake_external", "fake_appended"}) {
    CAPTURE(name);
    Loaded loaded(name, 2);
    stage_with_every_allocation_failing(loaded);
  }
}

TEST_CASE("update faults: no memory at any step of a rollback or a new replica") {
  Loaded loaded("fake_state", 2);
  Model& model = *loaded.model;
  // Calls `body` repeatedly: first the first allocation fails, then the second, until none fails. If the call succeeds
  // in spite of a failure, its effect must be complete.
  const auto until_none_fails = [&](auto&& prepare, auto&& body) {
    for (int64_t n = 1;; ++n) {
      REQUIRE(n < 20'000);
      prepare();
      const Standing before(loaded);
      std::optional<ErrorCode> code;
      bool failed;
      {
        const FailingMemory memory(n);
        code = code_of(body);
        failed = memory.failed();
      }
      CAPTURE(n);
      if (!failed) {
        CHECK(!code);
        CHECK(n > 10);
        return;
      }
      if (!code) continue;
      CHECK(code == ErrorCode::kOutOfMemory);
      CHECK(model.weight_version() == before.weight_version);
      CHECK(model.weight_sets().size() == before.sets.size());
      CHECK(model.replicas().size() == 2);
    }
  };
  // The update set buffers, so the rollback makes containers that keep the current ones.
  until_none_fails(
      [&] {
        stage(model, {{"steps", {50}}}, {.full = false});
        model.commit_weights();
      },
      [&] { model.rollback_weights(); });
  model.release_previous();
  until_none_fails(
      [&] {
        if (model.replicas().size() == 3) model.remove_replica(2);
      },
      [&] { model.add_replica(Device{}); });
  CHECK(loaded.knobs->live_containers == 3);
}

TEST_CASE("update faults: updates and their model's end, at the same time") {
  for (int i = 0; i < 50; ++i) {
    auto loaded = std::make_unique<Loaded>("fake_model", 2);
    std::atomic<int> begun{0};
    std::thread updater([model = loaded->model, &begun]() mutable {
      const auto update = model->begin_update({});
      model.reset();
      begun = 1;
      begun.notify_one();
      fill(*update, kNew);
      update->finish();
    });
    begun.wait(0);
    loaded.reset();
    updater.join();
    CHECK(fake::loaded().empty());
  }
}

TEST_CASE("update faults: updates, replicas that come and go, and readers, at the same time") {
  Loaded loaded("fake_folded", 2);
  Model& model = *loaded.model;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> published{0}, busy{0}, turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      while (!stop) {
        const auto code = code_of([&] {
          stage(model, kNew, {.full = t == 0});
          if (t == 0 || model.weight_version() % 2 == 0) {
            model.commit_weights();
            model.rollback_weights();
          } else {
            model.abort_weights();
          }
          ++published;
        });
        if (code == ErrorCode::kBusy) ++busy;
        // Meanwhile another thread may have aborted, or dropped the previous set by staging.
        if (code && code != ErrorCode::kBusy) CHECK(code == ErrorCode::kFailedPrecondition);
      }
    });
  threads.emplace_back([&] {
    while (!stop) {
      const int index = model.add_replica(Device{});
      model.remove_replica(index);
      ++turns;
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      const auto sets = model.weight_sets();
      CHECK(sets.size() <= 2);
      model.weights_digest(WeightState::kActive);
      model.extract_constants(WeightState::kActive);
      model.replicas();
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      const float y = run(model, 1)[0];
      if (y != 2 && y != 26) CHECK(y == 2);
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((published < 100 || turns < 100) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(published >= 100);
  CHECK(turns >= 100);
  drop_staged(model);
  model.release_previous();
  CHECK(loaded.knobs->live_containers == 2);
}
