// Replicas on devices that tests/server/fake_cuda.cpp makes up.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <vector>

#include "fake_cuda.h"
#include "fake_runner.h"
#include "src/runner/graph_runs.h"

using namespace sconce;
using namespace sconce::test;

namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};

// Opened under its own name: the runtime finds it by that.
FakeDevices& devices() {
  static FakeDevices* const all = [] {
    void* const library = dlopen(SCONCE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    return reinterpret_cast<FakeDevicesFunction*>(dlsym(library, "fake_cuda_devices"))();
  }();
  return *all;
}

struct OnDevices {
  Folder folder;
  FakeDevices& fake = devices();
  std::shared_ptr<Model> model;
  FakeKnobs* knobs;

  explicit OnDevices(std::vector<Device> where, LoadOptions options = {}) {
    fake::write_directory(folder.path / "package", {{"model", fake::model("fake_cuda")}});
    options.devices = std::move(where);
    model = Model::load(Package::open(folder.path / "package"), options);
    knobs = fake::loaded().back();
  }
  ~OnDevices() {
    fake.lost = -1;
    fake.records = false;
    fake.recordings_to_fail = 0;
  }
};

}  // namespace

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
  // Weights are updated without it, and it can go.
  stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false});
  on.model->commit_weights();
  on.model->remove_replica(1);
  CHECK(on.model->replicas().size() == 1);
  run(*on.model, 1);
}

TEST_CASE("devices: an update that finds a device lost fails once, and the next one does without it") {
  OnDevices on({kFirst, kSecond});
  on.fake.lost = 1;
  CHECK(code_of([&] { stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false}); }) == ErrorCode::kDevice);
  CHECK(on.model->generation() == 1);
  stage(*on.model, {{"scale.w", {9, 9, 9, 9}}}, {.full = false});
  CHECK(on.model->commit_weights() == 2);
  CHECK(run(*on.model, 1)[0] == 9);
  on.model->remove_replica(1);
}
