#include "src/runner/rehearsal.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;

namespace {

std::vector<Values> constant(float w, float b) {
  return {{"scale.w", std::vector<float>(4, w)}, {"scale.b", std::vector<float>(4, b)}};
}

float rehearsed(Rehearsal& rehearsal, float x) {
  const std::vector<Tensor> inputs{filled({2, 4}, x)};
  std::vector<Tensor> outputs(1);
  rehearsal.run(inputs, outputs);
  return outputs[0].data_as<float>()[0];
}

}  // namespace

TEST_CASE("rehearsal: a staged set runs while the active one serves") {
  for (const char* name : {"fake_model", "fake_folded"}) {
    CAPTURE(name);
    Loaded loaded(name);
    Model& model = *loaded.model;
    const std::vector<float> served = run(model, 3);
    CHECK(code_of([&] { model.rehearse(WeightState::kStaged); }) == ErrorCode::kFailedPrecondition);
    stage(model, constant(2, 1), {.full = name != std::string("fake_folded")});
    const std::unique_ptr<Rehearsal> staged = model.rehearse(WeightState::kStaged);
    const std::unique_ptr<Rehearsal> active = model.rehearse(WeightState::kActive);
    const float answer = rehearsed(*staged, 3);
    CHECK(answer != served.front());
    CHECK(rehearsed(*active, 3) == served.front());
    CHECK(run(model, 3) == served);
    CHECK(model.replicas().size() == 1);
    model.commit_weights();
    CHECK(run(model, 3).front() == answer);
    CHECK(rehearsed(*staged, 3) == answer);  // a rehearsal keeps its set after the commit
    CHECK(rehearsed(*model.rehearse(WeightState::kPrevious), 3) == served.front());
  }
}

TEST_CASE("rehearsal: it keeps model and set, and leaves nothing behind") {
  Loaded loaded("fake_model");
  const int containers = loaded.knobs->live_containers;
  stage(*loaded.model, constant(2, 1), {});
  std::unique_ptr<Rehearsal> staged = loaded.model->rehearse(WeightState::kStaged);
  CHECK(loaded.knobs->live_containers == containers + 2);  // the staged container, and the rehearsal's own
  loaded.model->abort_weights();
  CHECK(rehearsed(*staged, 3) == 7);
  std::weak_ptr<Model> model = loaded.model;
  loaded.model.reset();
  CHECK(rehearsed(*staged, 3) == 7);
  staged.reset();
  CHECK(model.expired());
}

TEST_CASE("rehearsal: buffers that the model writes are its own") {
  Loaded loaded("fake_state");
  Model& model = *loaded.model;
  const float first = run(model, 0).front();
  run(model, 0);
  const std::unique_ptr<Rehearsal> active = model.rehearse(WeightState::kActive);
  CHECK(rehearsed(*active, 0) == first);
  CHECK(rehearsed(*active, 0) == first + 1);
  CHECK(run(model, 0).front() == first + 2);
}

TEST_CASE("rehearsal: what fails in it is its own") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  const std::unique_ptr<Rehearsal> active = model.rehearse(WeightState::kActive);
  const std::vector<Tensor> wrong{filled({2, 5}, 1)};
  std::vector<Tensor> outputs(1);
  CHECK(code_of([&] { active->run({}, outputs); }) == ErrorCode::kInvalidArgument);
  loaded.knobs->fail_in_runs = 1;
  CHECK(code_of([&] { rehearsed(*active, 3); }) == ErrorCode::kModelFailed);
  CHECK(rehearsed(*active, 3) == stored(3).front());
  loaded.knobs->fail_in_creates = 1;
  CHECK_THROWS_AS(model.rehearse(WeightState::kActive), Error);
  CHECK(run(model, 3) == stored(3));
}

TEST_CASE("rehearsal: a named set runs, and is kept after its name has gone") {
  LoadOptions options;
  options.sets = 2;
  Loaded loaded("fake_model", 1, true, options), other("fake_model", 1, true, options);
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {.set = "a"});
  const std::unique_ptr<Rehearsal> set = model.rehearse(model.bring_set("a"));
  CHECK(rehearsed(*set, 3) == 7);
  CHECK(run(model, 3) == stored(3));
  model.remove_set("a");
  CHECK(rehearsed(*set, 3) == 7);
  stage(*other.model, constant(2, 1), {.set = "a"});
  CHECK(code_of([&] { model.rehearse(other.model->bring_set("a")); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("rehearsal: a constant without a value is named") {
  Loaded loaded("fake_weightless");
  try {
    loaded.model->rehearse(WeightState::kActive);
    FAIL("it was made");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kFailedPrecondition);
    CHECK(std::string(error.what()).find("scale.") != std::string::npos);
  }
}

TEST_CASE("rehearsal: one runs while others serve, stage and commit") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, answers{0};
  std::thread client([&] {
    while (!stop) {
      const float y = run(model, 1).front();
      // w = g and b = 999 g, or the stored ones.
      const float g = y / 1000;
      if (y != stored(1).front() && g != static_cast<float>(static_cast<int>(g))) ++wrong;
      ++answers;
    }
  });
  while (answers == 0) std::this_thread::yield();
  for (int g = 1; g <= 20; ++g) {
    const auto value = static_cast<float>(g);
    stage(model, constant(value, 999 * value), {});
    const std::unique_ptr<Rehearsal> staged = model.rehearse(WeightState::kStaged);
    for (int i = 0; i < 10; ++i) CHECK(rehearsed(*staged, 1) == 1000 * value);
    model.commit_weights();
  }
  stop = true;
  client.join();
  CHECK(wrong == 0);
}
