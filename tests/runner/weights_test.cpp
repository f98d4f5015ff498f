#include "sconce/weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "sconce/weight_sources.h"
#include "src/runner/constants/weight_memory.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

std::vector<Values> constant(float w, float b) {
  return {{"scale.w", std::vector<float>(4, w)}, {"scale.b", std::vector<float>(4, b)}};
}

std::vector<float> all(float value) { return std::vector<float>(4, value); }

}  // namespace

TEST_CASE("weights: staged, committed, rolled back, and back again") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {.label = "one"});
  CHECK(run(model, 3) == stored(3));
  auto sets = model.weight_sets();
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].state == WeightState::kActive);
  CHECK(sets[0].weight_version == 1);
  CHECK(sets[1].state == WeightState::kStaged);
  CHECK(sets[1].weight_version == 0);
  CHECK(sets[1].label == "one");
  CHECK(sets[1].own_bytes == 32);

  CHECK(model.commit_weights() == 2);
  RunInfo info;
  CHECK(run(model, 3, 4, &info) == all(7));
  CHECK(info.weight_version == 2);
  REQUIRE(info.label);
  CHECK(*info.label == "one");
  sets = model.weight_sets();
  CHECK(sets[0].label == "one");
  CHECK(sets[1].state == WeightState::kPrevious);
  CHECK(sets[1].weight_version == 1);

  CHECK(model.rollback_weights() == 3);
  CHECK(run(model, 3, 4, &info) == stored(3));
  CHECK(info.weight_version == 3);
  CHECK(!info.label);
  CHECK(model.rollback_weights() == 4);
  CHECK(run(model, 3, 4, &info) == all(7));
  CHECK(*info.label == "one");
  CHECK(loaded.knobs->live_containers == 4);

  model.release_previous();
  model.release_previous();
  CHECK(loaded.knobs->live_containers == 2);
  CHECK(model.weight_sets().size() == 1);
  CHECK(code_of([&] { model.rollback_weights(); }) == ErrorCode::kFailedPrecondition);
  CHECK(code_of([&] { model.commit_weights(); }) == ErrorCode::kFailedPrecondition);
  CHECK(code_of([&] { model.abort_weights(); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("weights: what a partial update leaves out is the active set's, and shared with it") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  stage(model, {{"scale.b", {1, 2, 3, 4}}}, {.full = false});
  CHECK(model.weight_sets()[1].own_bytes == 16);
  model.commit_weights();
  CHECK(run(model, 1) == std::vector<float>{2, 4, 6, 8});
  stage(model, {{"scale.w", {0, 0, 0, 0}}}, {.full = false});
  model.commit_weights();
  CHECK(run(model, 1) == std::vector<float>{1, 2, 3, 4});
  model.rollback_weights();
  CHECK(run(model, 1) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("weights: an aborted update leaves nothing behind") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  const int64_t tensors = loaded.knobs->live_tensors;
  stage(model, constant(2, 1), {});
  model.abort_weights();
  { const auto update = model.begin_update({}); }
  {
    const auto update = model.begin_update({});
    fill(*update, constant(2, 1));
  }
  CHECK(run(model, 3) == stored(3));
  CHECK(model.weight_version() == 1);
  CHECK(model.weight_sets().size() == 1);
  CHECK(loaded.knobs->live_tensors == tensors);
  CHECK(loaded.knobs->live_containers == 1);
}

TEST_CASE("weights: one update at a time, and the others learn whose it is") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  auto update = model.begin_update({.label = "first"});
  const auto busy = [&](const char* text, auto&& body) {
    CHECK(code_of(body) == ErrorCode::kBusy);
    CHECK_THROWS_WITH_AS(body(), doctest::Contains(text), Error);
  };
  const auto everything = [&](const char* text) {
    busy(text, [&] { model.begin_update({}); });
    busy(text, [&] { model.rollback_weights(); });
  };
  everything("first");
  busy("first", [&] { model.commit_weights(); });
  busy("first", [&] { model.abort_weights(); });
  fill(*update, constant(2, 1));
  everything("first");
  update->finish();
  everything("'first' are staged");
  update.reset();
  everything("'first' are staged");
  CHECK(model.weight_sets().size() == 2);  // reading does not fail meanwhile
  model.commit_weights();
  CHECK(run(model, 3) == all(7));
  model.begin_update({});
}

TEST_CASE("weights: the previous set stays until the names of the next one were found right") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {});
  model.commit_weights();
  const std::vector<WeightEntry> wrong{{"nope", DType::kFloat32, {4}}};
  CHECK(code_of([&] { model.begin_update({})->declare(wrong); }) == ErrorCode::kNotFound);
  const std::vector<WeightEntry> partial{{"scale.w", DType::kFloat32, {4}}};
  CHECK(code_of([&] { model.begin_update({})->declare(partial); }) == ErrorCode::kInvalidArgument);
  stage(model, constant(5, 5), {.dry_run = true});
  CHECK(model.weight_sets().size() == 2);
  CHECK(loaded.knobs->live_containers == 2);
  const auto update = model.begin_update({});
  fill(*update, constant(3, 3));
  CHECK(model.weight_sets().size() == 1);
  CHECK(loaded.knobs->live_containers == 1);
  CHECK(run(model, 3) == all(7));
}

TEST_CASE("weights: a dry run checks and stages nothing") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {.check_finite = true, .dry_run = true});
  CHECK(code_of([&] {
          stage(model, constant(2, std::numeric_limits<float>::infinity()), {.check_finite = true, .dry_run = true});
        }) == ErrorCode::kInvalidArgument);
  CHECK(model.weight_sets().size() == 1);
  CHECK(code_of([&] { model.commit_weights(); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("weights: labels") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  CHECK(code_of([&] { model.begin_update({.label = std::string(257, 'x')}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { model.begin_update({.label = "a\nb"}); }) == ErrorCode::kInvalidArgument);
  model.begin_update({.label = std::string(256, 'x')});
  model.begin_update({.label = "Schritt 1 \xc3\xbc"});
}

TEST_CASE("weights: folded constants follow a commit and a rollback, and a failing fold stages nothing") {
  Loaded loaded("fake_folded", 2);
  Model& model = *loaded.model;
  stage(model, {{"scale.w", all(10)}}, {.full = false});
  CHECK(run(model, 3)[0] == 6);
  const int64_t folds = loaded.knobs->folds;
  model.commit_weights();
  CHECK(run(model, 3)[0] == 60);
  model.rollback_weights();
  CHECK(run(model, 3)[0] == 6);
  CHECK(loaded.knobs->folds == folds);  // neither commit nor rollback folds

  loaded.knobs->fail_in_folds = 2;
  const auto update = model.begin_update({.full = false});
  fill(*update, {{"scale.w", all(1)}});
  CHECK(code_of([&] { update->finish(); }) == ErrorCode::kModelFailed);
  CHECK(run(model, 3)[0] == 6);
  CHECK(loaded.knobs->live_containers == 2);
  update->finish();
  model.commit_weights();
  CHECK(run(model, 3)[0] == 6);  // 2 * 1 * 3 + 0
}

TEST_CASE("weights: buffers that the model writes are kept, unless the update names them") {
  Loaded loaded("fake_state");
  Model& model = *loaded.model;
  const auto steps = [&] {
    run(model, 1);
    return model.extract_constants(WeightState::kActive).at("steps").data_as<float>()[0];
  };
  steps();
  CHECK(steps() == 2);
  stage(model, constant(1, 0), {});
  CHECK(steps() == 3);
  model.commit_weights();
  CHECK(steps() == 4);
  model.rollback_weights();
  CHECK(steps() == 5);
  stage(model, {{"steps", {100}}}, {.full = false});
  CHECK(steps() == 6);
  model.commit_weights();
  CHECK(steps() == 101);
  model.rollback_weights();  // a rollback keeps buffers, such as the step count
  CHECK(steps() == 102);
}

TEST_CASE("weights: digests tell values apart and find equal ones") {
  Loaded loaded("fake_model"), other("fake_external");
  Model& model = *loaded.model;
  const std::string first = model.weights_digest(WeightState::kActive);
  CHECK(first.starts_with("sha-256:"));
  CHECK(other.model->weights_digest(WeightState::kActive) == first);
  stage(model, {{"scale.w", {1, 2, 3, 4}}}, {.full = false});  // the stored values
  CHECK(model.weights_digest(WeightState::kStaged) == first);
  CHECK(code_of([&] { model.weights_digest(WeightState::kPrevious); }) == ErrorCode::kFailedPrecondition);
  model.abort_weights();
  stage(model, {{"scale.w", {1, 2, 3, 5}}}, {.full = false});
  model.commit_weights();
  CHECK(model.weights_digest(WeightState::kActive) != first);
  CHECK(model.weights_digest(WeightState::kPrevious) == first);
}

TEST_CASE("weights: a set is compared with the active one, constant by constant") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  CHECK(code_of([&] { model.weights_difference(WeightState::kStaged); }) == ErrorCode::kFailedPrecondition);
  stage(model, {{"scale.w", {1, 2, 3, 8}}}, {.full = false});  // stored: 1, 2, 3, 4
  const auto changed = [&](WeightState state) {
    std::vector<TensorDifference> all = model.weights_difference(state);
    std::erase_if(all, [](const TensorDifference& one) { return one.kind == TensorDifference::Kind::kSame; });
    return all;
  };
  const std::vector<TensorDifference> staged = changed(WeightState::kStaged);
  REQUIRE(staged.size() == 1);
  CHECK(staged[0].name == "scale.w");
  CHECK(staged[0].kind == TensorDifference::Kind::kChanged);
  CHECK(staged[0].difference.changed == 1);
  CHECK(staged[0].difference.largest == 4);
  CHECK(staged[0].difference.largest_at == 3);
  model.commit_weights();
  CHECK(changed(WeightState::kPrevious)[0].difference.squares_a == doctest::Approx(1 + 4 + 9 + 64));
  CHECK(changed(WeightState::kActive).empty());
}

TEST_CASE("weights: what runs keep of constants is made for new ones before they are published") {
  static const char kind = 0;
  const auto sum = []() -> Storage::Derive {
    return [](Storage& from) {
      const auto* values = static_cast<const float*>(from.data());
      return std::make_shared<float>(values[0] + values[1] + values[2] + values[3]);
    };
  };
  const auto kept = [&](Model& model) {
    const Tensor w = model.extract_constants(WeightState::kActive).at("scale.w");
    return *static_cast<const float*>(w.storage()->derived({&kind, {}}, sum));
  };
  Loaded m("fake_model");
  kept(*m.model);  // derives a value from the weight, as kernels do
  stage(*m.model, {{"scale.w", {1, 2, 3, 4}}}, {.full = false});
  m.model->commit_weights();
  const uint64_t published = Storage::derivations();
  CHECK(kept(*m.model) == 10);
  CHECK(Storage::derivations() == published);
  // After a rollback and the next commit, runs pack nothing either.
  m.model->rollback_weights();
  kept(*m.model);
  CHECK(Storage::derivations() == published);
  publish(*m.model, {{"scale.w", {2, 2, 2, 2}}}, {.full = false});
  const uint64_t updated = Storage::derivations();
  CHECK(kept(*m.model) == 8);
  CHECK(Storage::derivations() == updated);

  LoadOptions no_warm_up;
  no_warm_up.warm_up = false;
  Loaded cold("fake_model", 1, true, no_warm_up);
  kept(*cold.model);
  stage(*cold.model, {{"scale.w", {1, 2, 3, 4}}}, {.full = false});
  const uint64_t before = Storage::derivations();
  cold.model->commit_weights();
  CHECK(Storage::derivations() == before);
  CHECK(kept(*cold.model) == 10);
  CHECK(Storage::derivations() == before + 1);
}

TEST_CASE("weights: runs of compiled models pack nothing after a commit, and answer by the new weights") {
  for (const char* name : {"mlp", "convnet", "lstm"}) {
    CAPTURE(name);
    const auto package = Package::open(std::filesystem::path(SCONCE_BATCHING_PACKAGES) / (std::string(name) + ".pt2"));
    const auto model = Model::load(package, {}), other = Model::load(package, {});
    Ints sizes;
    for (const Dim& dim : model->info().spec.inputs.at(0).dims) sizes.push_back(std::max<int64_t>(dim.min, 2));
    const auto answer = [&](Model& of) {
      const std::vector<Tensor> inputs{filled(sizes, 0.25f)};
      std::vector<Tensor> outputs(of.info().spec.outputs.size());
      of.run(inputs, outputs);
      const Tensor& y = outputs[0];
      return std::vector<float>(y.data_as<float>(), y.data_as<float>() + y.numel());
    };
    const uint64_t cold = Storage::derivations();
    const std::vector<float> before = answer(*model);
    REQUIRE(Storage::derivations() > cold);  // otherwise the test has nothing to check
    std::vector<NamedTensor> halved;
    for (const auto& [constant, value] : model->extract_constants(WeightState::kActive)) {
      if (value.layout() != Layout::kStrided || value.dtype() != DType::kFloat32) continue;
      Tensor half = Tensor::empty_strided(value.sizes(), value.strides(), DType::kFloat32);
      for (size_t i = 0; i < half.storage()->bytes() / sizeof(float); ++i)
        half.data_as<float>()[i] = value.data_as<float>()[i] / 2;
      halved.push_back({constant, half});
    }
    REQUIRE_FALSE(halved.empty());
    const auto publish_halved = [&](Model& to) {
      const auto update = to.begin_update({.full = false});
      stage_tensors(*update, halved);
      update->finish();
      to.commit_weights();
    };
    publish_halved(*model);
    const uint64_t published = Storage::derivations();
    const std::vector<float> after = answer(*model);
    CHECK(Storage::derivations() == published);
    CHECK(after != before);
    publish_halved(*other);  // which has never run
    CHECK(answer(*other) == after);
  }
}

TEST_CASE("weights: an update for which the control group has no memory left is refused before it takes any") {
  const TempFolder root;
  struct Below {
    explicit Below(const TempFolder& root) { MemoryPromise::look_below(root.path()); }
    ~Below() { MemoryPromise::look_below({}); }
  } const below(root);
  Loaded m("fake_large");
  root.write("proc/self/cgroup", "0::/pod\n");
  root.write("sys/fs/cgroup/pod/memory.max", "100000000\n");
  root.write("sys/fs/cgroup/pod/memory.current", "95000000\n");
  const std::vector<WeightEntry> entries{{"scale.w", DType::kFloat32, {2097152}}};  // 8 MiB
  const auto declare = [&] {
    const auto update = m.model->begin_update({.full = false});
    update->declare(entries);
    return update->memory(0).size();
  };
  CHECK(code_of(declare) == ErrorCode::kOutOfMemory);
  CHECK(m.model->weight_sets().size() == 1);
  // The memory check counts what another update was promised but has not touched yet.
  root.write("sys/fs/cgroup/pod/memory.current", "88000000\n");
  Loaded other("fake_large");
  {
    const auto first = m.model->begin_update({.full = false});
    first->declare(entries);
    const auto second = other.model->begin_update({.full = false});
    CHECK(code_of([&] { second->declare(entries); }) == ErrorCode::kOutOfMemory);
  }
  CHECK(declare() == 8 << 20);
}

TEST_CASE("weights: an update keeps its model alive") {
  auto loaded = std::make_unique<Loaded>("fake_model");
  FakeKnobs* const knobs = loaded->knobs;
  auto update = loaded->model->begin_update({});
  loaded.reset();
  CHECK(knobs->live_containers == 1);
  fill(*update, constant(1, 1));
  update->finish();
  update.reset();
  CHECK(fake::loaded().empty());
}

TEST_CASE("weights: what an update leaves out of a package without weights is still missing") {
  Loaded loaded("fake_weightless");
  Model& model = *loaded.model;
  stage(model, {{"scale.w", all(2)}}, {.full = false});
  model.commit_weights();
  CHECK_THROWS_WITH_AS(run(model, 1), doctest::Contains("'scale.b' has not been given"), Error);
  stage(model, {{"scale.b", all(1)}}, {.full = false});
  model.commit_weights();
  CHECK(run(model, 3) == all(7));
}

TEST_CASE("weights: a set is published under the number of an earlier process") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {.label = "seven"});
  CHECK_THROWS_WITH_AS(model.commit_weights(1), "weight version 1 cannot follow weight version 1", Error);
  CHECK(model.weight_sets()[1].state == WeightState::kStaged);
  CHECK(model.commit_weights(7) == 7);
  RunInfo info;
  CHECK(run(model, 3, 4, &info) == all(7));
  CHECK(info.weight_version == 7);
  stage(model, constant(3, 1), {});
  CHECK(model.commit_weights() == 8);
  CHECK(model.rollback_weights() == 9);
}

TEST_CASE("weights: the active set gets a larger number, while requests run") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  stage(model, constant(2, 1), {.label = "one"});
  model.commit_weights();
  std::atomic<bool> ended{false};
  std::vector<std::string> problems;
  std::thread asking([&] {
    for (uint64_t seen = 0; !ended;) {
      RunInfo info;
      const std::vector<float> answer = run(model, 3, 4, &info);
      if (answer != all(7) || info.weight_version < seen)
        problems.push_back("weight version " + std::to_string(info.weight_version));
      seen = info.weight_version;
    }
  });
  for (const uint64_t number : {7, 8, 1000}) {
    model.set_weight_version(number);
    CHECK(model.weight_version() == number);
    RunInfo info;
    CHECK(run(model, 3, 4, &info) == all(7));
    CHECK(info.weight_version == number);
    CHECK(*info.label == "one");
  }
  ended = true;
  asking.join();
  CHECK(problems.empty());
  for (const uint64_t number : {0, 1, 999, 1000})
    CHECK(code_of([&] { model.set_weight_version(number); }) == ErrorCode::kInvalidArgument);
  CHECK(model.weight_sets()[0].weight_version == 1000);
  CHECK(model.weight_sets()[1].weight_version == 1);
  // What is staged stays, and everything that comes gets the next number.
  stage(model, constant(4, 1), {});
  model.set_weight_version(2000);
  CHECK(model.commit_weights() == 2001);
  CHECK(model.rollback_weights() == 2002);
  auto update = model.begin_update({.label = "first"});
  CHECK(code_of([&] { model.set_weight_version(3000); }) == ErrorCode::kBusy);
}

TEST_CASE("weights: the sets say which constant has no value") {
  Loaded loaded("fake_weightless");
  Model& model = *loaded.model;
  CHECK(!model.weight_sets()[0].missing.empty());
  stage(model, {{"scale.w", all(2)}}, {.full = false});
  CHECK(model.weight_sets()[1].missing == "scale.b");
  model.commit_weights();
  stage(model, {{"scale.b", all(1)}}, {.full = false});
  model.commit_weights();
  CHECK(model.weight_sets()[0].missing.empty());
}
