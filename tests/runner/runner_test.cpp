#include "src/runner/runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mapped_files.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

TEST_CASE("runner: every form of weights gives the same answers") {
  for (const char* name : {"fake_model", "fake_folded", "fake_state", "fake_appended", "fake_external"}) {
    CAPTURE(name);
    Loaded loaded(name);
    CHECK(run(*loaded.model, 3).front() == doctest::Approx(name == std::string("fake_folded") ? 6 : 3));
    if (name != std::string("fake_folded") && name != std::string("fake_state"))
      CHECK(run(*loaded.model, 3) == stored(3));
  }
}

TEST_CASE("runner: replicas share the constants of the archive, uncopied") {
  Loaded loaded("fake_large", 3);
  const auto before = loaded.model->extract_constants(WeightState::kActive);
  const void* shared = before.at("scale.w").data();
  for (int i = 0; i < 6; ++i) {
    std::vector<Tensor> inputs{filled({1, 2097152}, 1)}, outputs(1);
    loaded.model->run(inputs, outputs);
    CHECK(loaded.knobs->constants[0] == shared);
  }
  CHECK(loaded.knobs->live_containers == 3);
  CHECK(loaded.model->info().constant_bytes == 2u * 2097152 * 4);
}

TEST_CASE("runner: weights that the package does not bring must be given first") {
  Loaded loaded("fake_weightless");
  CHECK_THROWS_WITH_AS(run(*loaded.model, 1), doctest::Contains("has not been given"), Error);
  publish(*loaded.model, {{"scale.w", {2, 2, 2, 2}}, {"scale.b", {1, 1, 1, 1}}}, {});
  CHECK(run(*loaded.model, 3) == std::vector<float>(4, 7));
}

TEST_CASE("runner: whatever fails inside the model is an error, and the model goes on") {
  Loaded loaded("fake_model");
  for (auto kind : {FakeFailure::kException, FakeFailure::kCheck, FakeFailure::kShim, FakeFailure::kUnchecked,
                    FakeFailure::kUnknown}) {
    loaded.knobs->fail_kind = kind;
    loaded.knobs->fail_in_runs = 1;
    CHECK_THROWS_AS(run(*loaded.model, 1), Error);
    CHECK(run(*loaded.model, 3) == stored(3));
  }
  CHECK(loaded.knobs->live_tensors <= 2);  // the constants
}

TEST_CASE("runner: a model whose code accesses memory that it may not fails after max_code_faults runs") {
  guard_package_faults();
  LoadOptions options;
  options.max_code_faults = 3;
  Loaded loaded("fake_model", 2, true, options);
  const auto fail = [&](FakeFailure kind) {
    loaded.knobs->fail_kind = kind;
    loaded.knobs->fail_in_runs = 1;
    CHECK_THROWS_WITH_AS(run(*loaded.model, 1), doctest::Contains(kind == FakeFailure::kAccess ? "SIGSEGV" : "u0"),
                         Error);
  };
  for (int i = 0; i < 5; ++i) fail(FakeFailure::kCheck);  // not counted
  for (int i = 0; i < 2; ++i) fail(FakeFailure::kAccess);
  CHECK(run(*loaded.model, 3) == stored(3));
  CHECK_FALSE(loaded.model->code_failed());
  fail(FakeFailure::kAccess);
  CHECK(loaded.model->code_failed());
  CHECK_FALSE(loaded.model->failed());
  const int64_t runs = loaded.knobs->runs;
  CHECK_THROWS_WITH_AS(run(*loaded.model, 3), doctest::Contains("3 times"), Error);
  CHECK(loaded.knobs->runs == runs);

  Loaded other("fake_model", 1, true, {});  // counts for itself
  CHECK(run(*other.model, 3) == stored(3));
}

TEST_CASE("runner: a model whose failed runs have lost 256 MiB fails, unless max_code_faults is 0") {
  for (const int most : {100, 0}) {
    CAPTURE(most);
    LoadOptions options;
    options.max_code_faults = most;
    Loaded loaded("fake_model", 2, true, options);
    const auto lose = [&] {
      loaded.knobs->fail_kind = FakeFailure::kLoss;
      loaded.knobs->fail_in_runs = 1;
      CHECK_THROWS_WITH_AS(run(*loaded.model, 1), doctest::Contains("u0"), Error);
    };
    for (int64_t lost = kFakeLoss; lost < int64_t{256} << 20; lost += kFakeLoss) lose();
    CHECK(run(*loaded.model, 3) == stored(3));
    CHECK_FALSE(loaded.model->code_failed());
    lose();
    CHECK(loaded.model->code_failed() == (most > 0));
    if (most == 0) {
      CHECK(run(*loaded.model, 3) == stored(3));
      continue;
    }
    CHECK_FALSE(loaded.model->failed());
    const int64_t runs = loaded.knobs->runs;
    CHECK_THROWS_WITH_AS(run(*loaded.model, 3), doctest::Contains("has lost 256 MiB of memory"), Error);
    CHECK(loaded.knobs->runs == runs);

    Loaded other("fake_model", 1, true, options);  // counts for itself
    CHECK(run(*other.model, 3) == stored(3));
  }
}

TEST_CASE("runner: what a partial update leaves out comes from the active set") {
  Loaded loaded("fake_model", 2);
  CHECK(loaded.model->weight_version() == 1);
  publish(*loaded.model, {{"scale.w", {2, 2, 2, 2}}}, {.full = false});
  CHECK(loaded.model->weight_version() == 2);
  RunInfo info;
  CHECK(run(*loaded.model, 3, 4, &info) == std::vector<float>{6, 16, 26, 36});
  CHECK(info.weight_version == 2);
}

TEST_CASE("runner: an update that does not fit changes nothing") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  const auto refused = [&](const std::vector<WeightEntry>& entries, bool full, const char* text) {
    CHECK_THROWS_WITH_AS(model.begin_update({.full = full})->declare(entries), doctest::Contains(text), Error);
    CHECK(model.weight_version() == 1);
    CHECK(run(model, 3) == stored(3));
  };
  refused({{"nope", DType::kFloat32, {4}}}, false, "no constant 'nope'");
  refused({{"scale.w", DType::kFloat32, {5}}}, false, "expected shape [4], got [5]");
  refused({{"scale.w", DType::kFloat64, {4}}}, false, "expected float32, got float64");
  refused({{"scale.w", DType::kFloat32, {4}}}, true, "must name constant 'scale.b'");
}

TEST_CASE("runner: folded constants follow their sources") {
  Loaded loaded("fake_folded");
  CHECK(run(*loaded.model, 3)[0] == 6);  // 2 w
  stage(*loaded.model, {{"scale.w", {10, 10, 10, 10}}}, {.full = false});
  CHECK(run(*loaded.model, 3)[0] == 6);
  loaded.model->commit_weights();
  CHECK(run(*loaded.model, 3)[0] == 60);
  loaded.knobs->fail_in_folds = 1;
  CHECK_THROWS_AS(stage(*loaded.model, {{"scale.w", {1, 1, 1, 1}}}, {.full = false}), Error);
  CHECK(run(*loaded.model, 3)[0] == 60);
}

TEST_CASE("runner: a buffer that the model writes is kept across an update unless the update names it") {
  Loaded loaded("fake_state");
  const auto steps = [&] {
    run(*loaded.model, 1);
    return loaded.model->extract_constants(WeightState::kActive).at("steps").data_as<float>()[0];
  };
  CHECK(steps() == 1);
  CHECK(steps() == 2);
  publish(*loaded.model, {{"scale.w", {2, 2, 2, 2}}}, {.full = false});
  CHECK(steps() == 3);
  publish(*loaded.model, {{"steps", {100}}}, {.full = false});
  CHECK(steps() == 101);
}

TEST_CASE("runner: clients under updates see one weight version each, and none fails") {
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> answers{0}, mixed{0}, failed{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t)
    clients.emplace_back([&] {
      while (!stop) {
        std::vector<Tensor> inputs{filled({2, 4}, 1)}, outputs(1);
        try {
          model.run(inputs, outputs);
        } catch (const std::exception&) {
          ++failed;
          continue;
        }
        // Updates set w = g and b = -g + 1000 g: the answer is 1000 g for one g.
        const float* y = outputs[0].data_as<float>();
        const float g = y[0] / 1000;
        bool one_weight_version = g == static_cast<float>(static_cast<int>(g));
        for (int i = 0; i < 8; ++i) one_weight_version &= y[i] == g * 1000;
        if (!one_weight_version) ++mixed;
        ++answers;
      }
    });
  const auto all = [](float value) { return std::vector<float>(4, value); };
  publish(model, {{"scale.w", all(1)}, {"scale.b", all(999)}}, {});
  mixed = 0;  // answers of the stored weights are no multiple of 1000
  for (int g = 2; g < 200 || answers < 200; ++g) {
    const auto value = static_cast<float>(g % 1000);
    publish(model, {{"scale.w", all(value)}, {"scale.b", all(999 * value)}}, {});
  }
  stop = true;
  for (auto& client : clients) client.join();
  CHECK(answers > 0);
  CHECK(failed == 0);
  CHECK(mixed <= 4);  // at most one answer per client was on its way when counting began
  model.release_previous();
  CHECK(loaded.knobs->live_containers == 2);
}

TEST_CASE("runner: submitted requests are answered on lanes, errors too") {
  struct Request final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done = true;
      done.notify_all();
    }
  };
  Loaded loaded("fake_model", 2);
  std::vector<Tensor> inputs{filled({2, 4}, 3)}, outputs(1), wrong{filled({2, 3}, 3)};
  Request good, bad;
  good.inputs = inputs;
  good.outputs = outputs;
  bad.inputs = wrong;
  bad.outputs = outputs;
  loaded.model->submit(good);
  good.done.wait(false);
  CHECK(!good.error);
  CHECK(outputs[0].data_as<float>()[1] == fake::expected(3, 1));
  loaded.model->submit(bad);
  bad.done.wait(false);
  REQUIRE(bad.error);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(bad.error), doctest::Contains("expected size 4 at dimension 1"), Error);
}

TEST_CASE("runner: packages without source load with what their code tells") {
  Loaded loaded("fake_model", 1, false);
  CHECK(run(*loaded.model, 3) == stored(3));
  CHECK(loaded.model->constants().size() == 2);
}

TEST_CASE("runner: options out of range are refused") {
  TempFolder folder;
  fake::write_directory(folder.path() / "package");
  const auto package = Package::open(folder.path() / "package");
  LoadOptions options;
  options.replicas = 0;
  CHECK_THROWS_AS(Model::load(package, options), Error);
  options.replicas = 1;
  options.max_code_faults = -1;
  CHECK_THROWS_WITH_AS(Model::load(package, options), doctest::Contains("max_code_faults"), Error);
  options.max_code_faults = 0;
  options.devices = {Device{DeviceType::kCuda, 0}};
  CHECK_THROWS_AS(Model::load(package, options), Error);
  options.devices = {Device{}};
  options.model_name = "other";
  CHECK_THROWS_WITH_AS(Model::load(package, options), doctest::Contains("model"), Error);
}
