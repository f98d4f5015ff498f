// Replicas on the fake devices of tests/server/fake_cuda.cpp.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <vector>

#include "fake_cuda.h"
#include "sconce/weight_sources.h"
#include "src/device/device_backend.h"
#include "src/runner/replicas/graph_runs.h"
#include "src/runner/replicas/index_check.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};

// The test opens the fake library first. Later the runtime asks for a library of that name and gets this one.
FakeDevices& devices() {
  static FakeDevices* const all = [] {
    void* const library = dlopen(SCONCE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    return reinterpret_cast<FakeDevicesFunction*>(dlsym(library, "fake_cuda_devices"))();
  }();
  return *all;
}

struct OnDevices {
  TempFolder folder;
  FakeDevices& fake = devices();
  std::shared_ptr<Model> model;
  FakeKnobs* knobs;

  explicit OnDevices(std::vector<Device> where, bool source = true) {
    fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_cuda")}}, source);
    LoadOptions options;
    options.devices = std::move(where);
    model = Model::load(Package::open(folder.path() / "package"), options);
    knobs = fake::loaded().back();
  }
  ~OnDevices() {
    fake.lost = -1;
    fake.records = false;
    fake.recordings_to_fail = 0;
  }
};

}  // namespace

TEST_CASE("devices: a load asks for each device's context and for the model's libraries before it uses them") {
  FakeDevices& fake = devices();
  const int contexts = fake.contexts, libraries = fake.libraries;
  fake.imports = fake.rows = -1;
  OnDevices on({kFirst, kSecond});
  CHECK(fake.contexts - contexts == 2);
  CHECK(fake.libraries - libraries == 1);
  CHECK(fake.imports > 0);
  CHECK(on.model->info().spec.inputs.at(0).dims.at(0).max == INT64_MAX);
  CHECK(fake.rows.load() > int64_t{1} << 40);  // without a bound
}

TEST_CASE("devices: a recording that a neighbour spoils is tried again") {
  OnDevices on({kFirst});
  on.fake.records = true;
  on.fake.recordings_to_fail = 2;
  const int before = on.fake.recordings;
  for (int i = 0; i < 60; ++i) run(*on.model, 1);
  CHECK(on.fake.recordings - before == 3);
  const ReplicaInfo replica = on.model->replicas().at(0);
  CHECK(replica.graphs == 1);
  CHECK(replica.graph_runs > 0);
  CHECK(replica.no_graphs.empty());
  CHECK(replica.failure.empty());
}

TEST_CASE("devices: what cannot be recorded is not tried again") {
  OnDevices on({kFirst});
  for (int i = 0; i < 60; ++i) CHECK(run(*on.model, 2) == stored(2));
  CHECK(on.model->replicas().at(0).no_graphs == "recording a CUDA graph: the fake device records nothing");
}

TEST_CASE("devices: a run that fails loses no device; one whose device is lost takes no part any more") {
  OnDevices on({kFirst, kSecond});
  on.knobs->fail_in_runs = 1;
  CHECK(code_of([&] { run(*on.model, 1); }) == ErrorCode::kModelFailed);
  for (const ReplicaInfo& replica : on.model->replicas()) CHECK(replica.failure.empty());
  on.fake.lost = 1;
  int failed = 0;
  for (uint64_t key = 1; key <= 20; ++key) {
    const std::vector<Tensor> inputs{filled({2, 4}, 1)};
    std::vector<Tensor> outputs(1);
    failed += code_of([&] { on.model->run(inputs, outputs, key); }) == ErrorCode::kDevice;
  }
  CHECK(failed == 1);
  CHECK(on.model->replicas().at(1).failure == "an illegal memory access was encountered");
  CHECK_FALSE(on.model->failed());
  // Updates leave out the failed replica, and it can be removed.
  stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false});
  on.model->commit_weights();
  on.model->remove_replica(1);
  CHECK(on.model->replicas().size() == 1);
  run(*on.model, 1);
}

TEST_CASE("devices: what was pushed to the host and sent to the device is kept on the device alone") {
  OnDevices on({kFirst, kSecond});
  stage(*on.model, {{"scale.w", {9, 8, 7, 6}}}, {.full = false});
  on.model->commit_weights();
  const Tensor kept = on.model->extract_constants(WeightState::kActive).at("scale.w");
  CHECK(kept.data_as<float>()[1] == 8);
  CHECK(kept.storage()->references() == 1);  // a copy for us alone, because the set is on the device only
  const std::string digest = on.model->weights_digest(WeightState::kActive);
  for (uint64_t key = 1; key <= 8; ++key) {
    const std::vector<Tensor> inputs{filled({2, 4}, 1)};
    std::vector<Tensor> outputs(1);
    on.model->run(inputs, outputs, key);
    CHECK(outputs[0].data_as<float>()[1] == 8 + 10);
  }
  // Constants that the next update leaves out come from the device, also for a replica that is added later.
  stage(*on.model, {{"scale.b", {1, 1, 1, 1}}}, {.full = false});
  on.model->commit_weights();
  CHECK(run(*on.model, 1)[1] == 8 + 1);
  on.model->rollback_weights();
  CHECK(on.model->weights_digest(WeightState::kActive) == digest);
  on.model->remove_replica(1);
  on.model->add_replica(kSecond);
  on.model->remove_replica(0);
  CHECK(run(*on.model, 1)[1] == 8 + 10);
}

TEST_CASE("devices: a set that only the device has is read from there in pieces") {
  OnDevices on({kFirst});
  stage(*on.model, {{"scale.w", {9, 8, 7, 6}}}, {.full = false});
  on.model->commit_weights();
  const std::unique_ptr<WeightSetFile> set = on.model->open_weights(WeightState::kActive);
  for (size_t e = 0; e < set->entries().size(); ++e) {
    if (set->entries()[e].name != "scale.w") continue;
    CHECK(set->in_place(e).empty());
    std::vector<float> values(4);
    set->read(e, std::as_writable_bytes(std::span(values).first(3)));
    set->read(e, std::as_writable_bytes(std::span(values).last(1)));
    CHECK(values == std::vector<float>{9, 8, 7, 6});
    return;
  }
  FAIL("no scale.w");
}

TEST_CASE("devices: the previous set keeps no graphs, and what nobody needs goes back to devices") {
  OnDevices on({kFirst});
  on.fake.records = true;
  for (int i = 0; i < 8; ++i) run(*on.model, 1);
  CHECK(on.fake.recorded_memory == 1);
  const int trims = on.fake.trims;
  stage(*on.model, {{"scale.w", {9, 8, 7, 6}}}, {.full = false});
  on.model->commit_weights();
  CHECK(on.fake.recorded_memory == 0);
  CHECK(on.fake.trims > trims);
  for (int i = 0; i < 8; ++i) run(*on.model, 1);
  CHECK(on.fake.recorded_memory == 1);
  on.model->rollback_weights();
  CHECK(on.fake.recorded_memory == 0);
  for (int i = 0; i < 8; ++i) run(*on.model, 1);
  CHECK(on.fake.recorded_memory == 1);
  const int idle = on.fake.trims;
  on.model->give_back_idle_memory();
  CHECK(on.fake.trims > idle);
  on.model.reset();
  CHECK(on.fake.recorded_memory == 0);
  CHECK(on.fake.live == 0);
}

TEST_CASE("devices: what the model writes to inputs of the host arrives there, with graphs and without") {
  OnDevices on({kFirst}, false);  // without its source, which says that it writes no inputs
  on.knobs->write_input = true;
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  on.model->run(inputs, outputs);
  CHECK(outputs[0].data_as<float>()[0] == stored(1)[0]);
  CHECK(inputs[0].data_as<float>()[0] == 2);
  CHECK(inputs[0].data_as<float>()[1] == 1);
  on.model->run(inputs, outputs);
  CHECK(inputs[0].data_as<float>()[0] == 3);
  // Inputs may be in read-only memory if the model does not write them.
  on.knobs->write_input = false;
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const int64_t sizes[] = {2, 4}, strides[] = {4, 1};
  const std::vector<Tensor> constant{Tensor::from_blob(page, sizes, strides, DType::kFloat32)};
  on.fake.records = true;
  for (int i = 0; i < 6; ++i) on.model->run(constant, outputs);
  CHECK(on.model->replicas().at(0).graph_runs > 0);
  munmap(page, 4096);
}

TEST_CASE("devices: an update that finds a device lost fails once, and the next one does without it") {
  OnDevices on({kFirst, kSecond});
  on.fake.lost = 1;
  CHECK(code_of([&] { stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false}); }) == ErrorCode::kDevice);
  CHECK(on.model->weight_version() == 1);
  stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false});
  CHECK(on.model->commit_weights() == 2);
  CHECK(run(*on.model, 1)[0] == 9);
  on.model->rollback_weights();
  CHECK(run(*on.model, 1) == stored(1));
  on.model->remove_replica(1);
}

TEST_CASE("devices: of an output whose last rows are wanted these alone come to the host, with graphs and without") {
  OnDevices on({kFirst});
  struct Asked final : RunRequest {
    std::atomic<bool> done{false};
    void finished() noexcept override {
      done = true;
      done.notify_one();
    }
  };
  std::vector<float> rows(8);
  // Rows 0 and 1 of y = x * w + b, with w = 1, 2, 3, 4 and b = 0, 10, 20, 30.
  const auto ask = [&](LastRows wanted, int output, bool stay) {
    const std::vector<Tensor> inputs{filled({2, 4}, 1)};
    inputs[0].data_as<float>()[7] = -10;
    std::vector<Tensor> outputs(1);
    Asked asked;
    asked.inputs = inputs;
    asked.outputs = outputs;
    asked.device_outputs = stay;
    asked.last_rows = {output, wanted};
    on.model->submit(asked);
    asked.done.wait(false);
    REQUIRE(asked.error == nullptr);
    return outputs[0];
  };
  for (const bool graphs : {false, true}) {
    on.fake.records = graphs;
    if (graphs) {  // the first model was found out to be no model for graphs
      LoadOptions options;
      options.devices = {kFirst};
      on.model = Model::load(Package::open(on.folder.path() / "package"), options);
    }
    for (const bool stay : {false, true}) {
      if (graphs) {  // a graph of the fake device does no work: what the recorded run left stays
        for (int i = 0; i < 6; ++i) ask({}, -1, stay);
        CHECK(on.model->replicas().at(0).graph_runs > 0);
      }
      CHECK(ask({}, -1, stay).is_cpu() != stay);
      const Tensor row = ask({}, 0, stay), both = ask({.parts = 2}, 0, stay),
                   best = ask({.parts = 2, .largest = 2}, 0, stay);
      CHECK((row.is_cpu() && both.is_cpu() && best.is_cpu()));
      CHECK((row.numel() == 4 && both.numel() == 8 && best.numel() == 4));
      if (!graphs) {
        CHECK(row.data_as<float>()[3] == -10);
        CHECK(both.data_as<float>()[3] == 34);
        CHECK(best.data_as<uint64_t>()[0] == rank_of(34, 3));
        CHECK(best.data_as<uint64_t>()[2] == rank_of(23, 2));
      }
      // It has no three equal parts.
      const Tensor whole = ask({.parts = 3}, 0, stay);
      CHECK((whole.is_cpu() && whole.dtype() == DType::kFloat32 && whole.dim() == 2 && whole.numel() == 8));
    }
  }
}

TEST_CASE("devices: indices that lie on a device are fetched for their check") {
  devices();
  ModelSpec spec;
  spec.inputs.resize(1);
  spec.inputs[0].name = "ids";
  spec.metadata["sconce_index_bounds"] = R"({"version": 1, "bounds": [{"input": 0, "low": -100, "high": 99}]})";
  const IndexCheck check(spec, true);
  const int64_t sizes[] = {3};
  Tensor here = Tensor::empty(sizes, DType::kInt64), there = Tensor::empty(sizes, DType::kInt64, kFirst);
  const auto send = [&](int64_t second) {
    const int64_t values[] = {0, second, 99};
    std::copy(std::begin(values), std::end(values), here.data_as<int64_t>());
    device_backend(kFirst).copy(here, there);
  };
  send(-100);
  check.of_device({&there, 1});
  send(100);
  check.of_host({&there, 1});  // leaves it alone
  CHECK_THROWS_WITH_AS(check.of_device({&there, 1}), "input 0 (ids): index 100 at [1] is out of bounds: -100 to 99",
                       Error);
}
