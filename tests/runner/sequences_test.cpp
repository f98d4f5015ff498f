// Sequences: each has its own copy of the buffers that the model writes. The fake model with state adds to its answer
// how many runs there were before.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/runner/counted_memory.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;

namespace {

LoadOptions places(int count, uint64_t memory = 0, bool follow = false) {
  LoadOptions options;
  options.sequences = count;
  options.sequences_memory = memory;
  options.sequences_follow = follow;
  return options;
}

Loaded with_places(int count, int replicas = 1, uint64_t memory = 0, bool follow = false) {
  return Loaded("fake_state", replicas, true, places(count, memory, follow));
}

// The first element of the answer to x.
float step(Model& model, const SequenceStep& step, float x = 0, RunInfo* info = nullptr,
           const WeightSet* weights = nullptr) {
  const std::vector<Tensor> inputs{filled({1, 4}, x)};
  std::vector<Tensor> outputs(1);
  const RunInfo got = model.run(inputs, outputs, 0, weights, step);
  if (info) *info = got;
  return outputs[0].data_as<float>()[0];
}

SequenceStep begin(const std::shared_ptr<Sequence>& sequence, uint64_t epoch = 0) {
  return {.sequence = sequence.get(), .begins = true, .epoch = epoch};
}
SequenceStep next(const std::shared_ptr<Sequence>& sequence, uint64_t epoch = 0) {
  return {.sequence = sequence.get(), .epoch = epoch};
}

}  // namespace

TEST_CASE("sequences: each has its own state, and the replica keeps its") {
  Loaded loaded = with_places(4);
  Model& model = *loaded.model;
  CHECK(model.sequence_bytes() == 4);
  const auto a = model.make_sequence(), b = model.make_sequence();
  CHECK(step(model, begin(a)) == 0);
  CHECK(step(model, {}) == 0);
  CHECK(step(model, next(a)) == 1);
  CHECK(step(model, begin(b)) == 0);
  CHECK(step(model, next(a)) == 2);
  CHECK(step(model, next(b)) == 1);
  CHECK(step(model, {}) == 1);
  CHECK(step(model, begin(a)) == 0);
  CHECK(step(model, next(a)) == 1);
  CHECK(step(model, next(b)) == 2);
}

TEST_CASE("sequences: interleaved ones answer as each does alone") {
  for (const char* name : {"fake_state", "fake_model"}) {
    CAPTURE(name);
    Loaded loaded(name, 2, true, places(64));
    Model& model = *loaded.model;
    if (std::string(name) == "fake_model") {
      CHECK(code_of([&] { model.make_sequence(); }) == ErrorCode::kFailedPrecondition);
      continue;
    }
    std::mt19937 random(7);
    struct One {
      std::shared_ptr<Sequence> sequence;
      int steps = 0;
    };
    std::vector<One> all(64);
    std::vector<size_t> on(2);
    for (One& one : all) one.sequence = model.make_sequence(), ++on.at(one.sequence->replica());
    CHECK(on == std::vector<size_t>{32, 32});
    for (int i = 0; i < 4000; ++i) {
      One& one = all[random() % all.size()];
      if (one.steps > 0 && random() % 20 == 0) one.steps = 0;
      const float x = static_cast<float>(random() % 100);
      RunInfo info;
      const float y = step(model, one.steps == 0 ? begin(one.sequence) : next(one.sequence), x, &info);
      CHECK(y == x + static_cast<float>(one.steps++));
      CHECK(static_cast<size_t>(info.replica) == one.sequence->replica());
    }
  }
}

TEST_CASE("sequences: steps that are queued run in their order, on their replica") {
  Loaded loaded = with_places(8, 2);
  Model& model = *loaded.model;
  struct Step final : RunRequest {
    std::vector<Tensor> in{filled({1, 4}, 0)}, out{1};
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done = true;
      done.notify_one();
    }
  };
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (int i = 0; i < 8; ++i) sequences.push_back(model.make_sequence());
  constexpr size_t kSteps = 50;
  std::vector<Step> steps(sequences.size() * kSteps);
  for (size_t i = 0; i < steps.size(); ++i) {
    Step& one = steps[i];
    const auto& sequence = sequences[i % sequences.size()];
    one.inputs = one.in;
    one.outputs = one.out;
    one.step = i < sequences.size() ? begin(sequence) : next(sequence);
    if (i % 2 == 0) one.replica = static_cast<int>(sequence->replica());
    model.submit(one);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].done.wait(false);
    REQUIRE(!steps[i].error);
    CHECK(steps[i].out[0].data_as<float>()[0] == static_cast<float>(i / sequences.size()));
    CHECK(static_cast<size_t>(steps[i].info.replica) == sequences[i % sequences.size()]->replica());
  }
}

TEST_CASE("sequences: a step costs no more memory, locks or copies than a run without one") {
  Loaded loaded = with_places(3);
  Model& model = *loaded.model;
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (int i = 0; i < 3; ++i) sequences.push_back(model.make_sequence());
  const std::vector<Tensor> inputs{filled({1, 4}, 1)};
  std::vector<Tensor> outputs(1);
  const auto cost = [&](auto&& step_of) {
    for (size_t i = 0; i < 6; ++i) model.run(inputs, outputs, 0, nullptr, step_of(i));
    const Counts before = counts();
    for (size_t i = 0; i < 30; ++i) model.run(inputs, outputs, 0, nullptr, step_of(i));
    const Counts after = counts();
    return std::vector<int64_t>{after.allocations - before.allocations, after.mappings - before.mappings,
                                after.locks - before.locks};
  };
  for (const auto& sequence : sequences) step(model, begin(sequence));
  const auto plain = cost([](size_t) { return SequenceStep{}; });
  const void* const own = loaded.knobs->constants[2];
  const int64_t creates = loaded.knobs->creates, updates = loaded.knobs->updates;
  CHECK(cost([&](size_t i) { return next(sequences[i % 3]); }) == plain);
  // Beginning anew takes the same place with the same buffers.
  CHECK(cost([&](size_t i) { return begin(sequences[i % 3]); }) == plain);
  CHECK(loaded.knobs->creates == creates);
  CHECK(loaded.knobs->updates == updates);
  std::vector<const void*> buffers;
  for (const auto& sequence : sequences) {
    step(model, next(sequence));
    buffers.push_back(loaded.knobs->constants[2]);
    CHECK(loaded.knobs->constants[0] != nullptr);
    CHECK(buffers.back() != own);
  }
  CHECK(std::adjacent_find(buffers.begin(), buffers.end()) == buffers.end());
  // All weights are those of the replica: places share them.
  const void* const weights = loaded.knobs->constants[0];
  step(model, {});
  CHECK(loaded.knobs->constants[0] == weights);
}

TEST_CASE("sequences: no more than there are places, or memory for their buffers") {
  for (const bool memory : {false, true}) {
    CAPTURE(memory);
    Loaded loaded = with_places(memory ? 100 : 2, 1, memory ? 11 : 0);
    Model& model = *loaded.model;
    std::shared_ptr<Sequence> a = model.make_sequence();
    const auto b = model.make_sequence();
    const std::string message = error_from(ErrorCode::kQueueFull, [&] { model.make_sequence(); });
    CHECK(contains(message, "all places for sequences are taken: 2"));
    CHECK(contains(message, "memory") == memory);
    CHECK(step(model, begin(a)) == 0);
    CHECK(step(model, next(a)) == 1);
    a.reset();
    a = model.make_sequence();
    CHECK(code_of([&] { step(model, next(a)); }) == ErrorCode::kFailedPrecondition);
    CHECK(step(model, begin(a)) == 0);  // the place was used before
    CHECK(step(model, next(a)) == 1);
  }
}

TEST_CASE("sequences: places that nobody took since memory was last given back are freed") {
  Loaded loaded = with_places(8);
  Model& model = *loaded.model;
  const int64_t before = loaded.knobs->live_containers;
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (int i = 0; i < 8; ++i) {
    sequences.push_back(model.make_sequence());
    step(model, begin(sequences.back()));
  }
  CHECK(loaded.knobs->live_containers == before + 8);
  sequences.resize(2);
  model.give_back_idle_memory();
  CHECK(loaded.knobs->live_containers == before + 8);
  sequences.push_back(model.make_sequence());
  sequences.pop_back();
  model.give_back_idle_memory();
  CHECK(loaded.knobs->live_containers == before + 3);
  model.give_back_idle_memory();
  CHECK(loaded.knobs->live_containers == before + 2);
  CHECK(step(model, next(sequences[1])) == 1);
  sequences.clear();
  std::weak_ptr<Model> gone = loaded.model;
  loaded.model.reset();
  CHECK(gone.expired());
}

TEST_CASE("sequences: one keeps the model") {
  Loaded loaded = with_places(1);
  std::shared_ptr<Sequence> sequence = loaded.model->make_sequence();
  step(*loaded.model, begin(sequence));
  std::weak_ptr<Model> model = loaded.model;
  loaded.model.reset();
  CHECK(!model.expired());
  sequence.reset();
  CHECK(model.expired());
}

TEST_CASE("sequences: a step that fails in the model leaves no state, a refused one changes nothing") {
  Loaded loaded = with_places(2);
  Model& model = *loaded.model;
  const auto a = model.make_sequence(), b = model.make_sequence();
  step(model, begin(a));
  step(model, begin(b));
  CHECK(code_of([&] {
          const std::vector<Tensor> wrong{filled({1, 5}, 0)};
          std::vector<Tensor> outputs(1);
          model.run(wrong, outputs, 0, nullptr, next(a));
        }) == ErrorCode::kInvalidArgument);
  CHECK(step(model, next(a)) == 1);
  loaded.knobs->fail_in_runs = 1;
  CHECK(code_of([&] { step(model, next(a)); }) == ErrorCode::kModelFailed);
  CHECK(code_of([&] { step(model, next(a)); }) == ErrorCode::kFailedPrecondition);
  CHECK(step(model, next(b)) == 1);
  CHECK(step(model, begin(a)) == 0);
  CHECK(step(model, next(a)) == 1);
  loaded.knobs->fail_in_runs = 1;
  CHECK(code_of([&] { step(model, begin(a)); }) == ErrorCode::kModelFailed);
  CHECK(code_of([&] { step(model, next(a)); }) == ErrorCode::kFailedPrecondition);
  // Nor does a step of a beginning that never ran.
  CHECK(step(model, begin(a, 1)) == 0);
  CHECK(code_of([&] { step(model, next(a, 2)); }) == ErrorCode::kFailedPrecondition);
  CHECK(step(model, next(a, 1)) == 1);
}

TEST_CASE("sequences: no memory for a place is the step's error") {
  for (int64_t nth = 1; nth < 200; ++nth) {
    Loaded loaded = with_places(2);
    Model& model = *loaded.model;
    const auto warm = model.make_sequence();
    step(model, begin(warm));
    std::vector<Tensor> inputs{filled({1, 4}, 0)}, outputs(1);
    std::shared_ptr<Sequence> sequence;
    bool failed = false;
    try {
      const FailingMemory memory(nth);
      sequence = model.make_sequence();
      model.run(inputs, outputs, 0, nullptr, begin(sequence));
      failed = memory.failed();
    } catch (const Error& error) {
      failed = true;
      CHECK(error.code() == ErrorCode::kOutOfMemory);
    }
    if (!sequence) sequence = model.make_sequence();
    CHECK(step(model, begin(sequence)) == 0);
    CHECK(step(model, next(sequence)) == 1);
    CHECK(step(model, next(warm)) == 1);
    if (!failed) {
      CHECK(nth > 3);
      return;
    }
  }
  FAIL("a place never came to be");
}

TEST_CASE("sequences: one ends with the weights that it began with") {
  for (const bool follow : {false, true}) {
    CAPTURE(follow);
    Loaded loaded = with_places(3, 1, 0, follow);
    Model& model = *loaded.model;
    const auto old = model.make_sequence(), later = model.make_sequence();
    RunInfo info;
    CHECK(step(model, begin(old), 2, &info) == 2);  // w = 1, b = 0
    CHECK(info.weight_version == 1);
    for (uint64_t update = 2; update < 5; ++update) {
      const float w = static_cast<float>(update);
      stage(model, {{"scale.w", std::vector<float>(4, w)}, {"scale.b", {1, 1, 1, 1}}}, {.label = "new"});
      model.commit_weights();
      const float steps = static_cast<float>(update) - 1;
      CHECK(step(model, next(old), 2, &info) == (follow ? 2 * w + 1 : 2) + steps);
      CHECK(info.weight_version == (follow ? update : 1));
      CHECK((info.label != nullptr) == follow);
      CHECK(step(model, begin(later), 2, &info) == 2 * w + 1);
      CHECK(info.weight_version == update);
      CHECK(*info.label == "new");
    }
    model.rollback_weights();
    CHECK(step(model, next(later), 2) == 2 * (follow ? 3 : 4) + 1 + 1);
  }
}

TEST_CASE("sequences: initial values are those of the set") {
  Loaded loaded = with_places(3);
  Model& model = *loaded.model;
  const auto old = model.make_sequence(), later = model.make_sequence();
  step(model, begin(old));
  stage(model, {{"steps", {100}}}, {.full = false});
  model.commit_weights();
  CHECK(step(model, begin(later)) == 100);
  CHECK(step(model, next(later)) == 101);
  CHECK(step(model, next(old)) == 1);
  CHECK(step(model, begin(old)) == 100);
}

TEST_CASE("sequences: one of a named set stays with it, even when the name is gone") {
  LoadOptions options = places(4);
  options.sets = 4;
  Loaded loaded("fake_state", 1, true, options);
  Model& model = *loaded.model;
  stage(model, {{"scale.w", std::vector<float>(4, 5)}}, {.full = false, .set = "five"});
  const auto sequence = model.make_sequence();
  RunInfo info;
  {
    const std::shared_ptr<const WeightSet> set = model.bring_set("five");
    CHECK(step(model, begin(sequence), 2, &info, set.get()) == 10);
    CHECK(*info.set == "five");
  }
  model.remove_set("five");
  CHECK(step(model, next(sequence), 2, &info) == 11);
  CHECK(*info.set == "five");
  CHECK(step(model, begin(sequence), 2, &info) == 2);
  CHECK(!info.set);
}

TEST_CASE("sequences: with their replica they end") {
  Loaded loaded = with_places(4, 2);
  Model& model = *loaded.model;
  const auto a = model.make_sequence(), b = model.make_sequence();
  REQUIRE(a->replica() == 0);
  step(model, begin(a));
  step(model, begin(b));
  const int64_t containers = loaded.knobs->live_containers;
  model.remove_replica(1);
  CHECK(loaded.knobs->live_containers == containers - 2);  // the replica's own, and the place's
  CHECK(step(model, next(a)) == 1);
  CHECK(code_of([&] { step(model, next(b)); }) == ErrorCode::kUnavailable);
  CHECK(model.make_sequence()->replica() == 0);
  CHECK(model.add_replica(Device{}) == 1);
  CHECK(code_of([&] { step(model, begin(b)); }) == ErrorCode::kUnavailable);
  const auto c = model.make_sequence();
  CHECK(c->replica() == 1);
  CHECK(step(model, begin(c)) == 0);
}

TEST_CASE("sequences: another model's are refused, and a model may have none") {
  Loaded first = with_places(1), second = with_places(1), without("fake_state");
  const auto sequence = first.model->make_sequence();
  CHECK(code_of([&] { step(*second.model, begin(sequence)); }) == ErrorCode::kInvalidArgument);
  CHECK(contains(error_from(ErrorCode::kFailedPrecondition, [&] { without.model->make_sequence(); }),
                 "setting sequences"));
  CHECK(code_of([&] { with_places(-1); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("sequences: threads with their own, under updates and replicas that come and go") {
  Loaded loaded = with_places(16, 2);
  Model& model = *loaded.model;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0}, answers{0}, lost{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 3; ++t)
    clients.emplace_back([&] {
      while (!stop) {
        const auto sequence = model.make_sequence();
        float first = 0;
        for (int i = 0; i < 20; ++i) {
          try {
            // Updates set b = g and w = 1: the answer is g, and one more with each step.
            const float y = step(model, i == 0 ? begin(sequence) : next(sequence));
            if (i == 0) first = y;
            if (y != first + static_cast<float>(i)) ++wrong;
            ++answers;
          } catch (const Error& error) {
            if (error.code() != ErrorCode::kUnavailable) ++wrong;
            ++lost;
            break;
          }
        }
      }
    });
  for (int i = 1; i <= 60; ++i) {
    stage(model, {{"scale.b", std::vector<float>(4, static_cast<float>(1000 * i))}}, {.full = false});
    model.commit_weights();
    if (i % 10 == 5) model.remove_replica(1);
    if (i % 10 == 0) model.add_replica(Device{});
    model.give_back_idle_memory();
  }
  while (answers < 500) std::this_thread::yield();
  stop = true;
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
}
