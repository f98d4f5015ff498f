// Updates from tensors, and updates that come in parts.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "fake_cuda.h"
#include "sconce/device_memory.h"
#include "sconce/weight_sources.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;

namespace {

constexpr Device kGpu{DeviceType::kCuda, 0}, kOther{DeviceType::kCuda, 1};

// The test opens the fake library first. Later the runtime asks for a library of that name and gets this one.
FakeDevices& open_devices() {
  static FakeDevices* const all = [] {
    void* const library = dlopen(SCONCE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    return reinterpret_cast<FakeDevicesFunction*>(dlsym(library, "fake_cuda_devices"))();
  }();
  return *all;
}

// Memory of a fake device.
struct DeviceFloats {
  Tensor whole;
  explicit DeviceFloats(int64_t count, Device device) : whole(Tensor::empty(Ints{count}, DType::kFloat32, device)) {
    std::fill_n(values(), count, -1.0f);
  }
  float* values() {
    float* const first = whole.data_as<float>();
    REQUIRE(first != nullptr);
    return first;
  }
  void put(int64_t at, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), this->values() + at);
  }
};

std::shared_ptr<Model> on_device(TempFolder& folder) {
  open_devices();
  fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_cuda")}}, true);
  LoadOptions options;
  options.devices = {kGpu};
  return Model::load(Package::open(folder.path() / "package"), options);
}

void publish_tensors(Model& model, std::span<const NamedTensor> tensors, UpdateOptions options = {}) {
  const auto update = model.begin_update(std::move(options));
  stage_tensors(*update, tensors);
  update->finish();
  model.commit_weights();
}

}  // namespace

TEST_CASE("tensor updates: values of the host, in any strides") {
  Loaded loaded("fake_model");
  Tensor wide = Tensor::empty(Ints{4, 2}, DType::kFloat32);
  for (int64_t i = 0; i < 8; ++i) wide.data_as<float>()[i] = i % 2 == 0 ? 3 : 7;
  publish_tensors(*loaded.model, std::vector<NamedTensor>{{"scale.w", wide.as_strided(Ints{4}, Ints{2}, 0)},
                                                          {"scale.b", wide.as_strided(Ints{4}, Ints{2}, 1)}});
  CHECK(run(*loaded.model, 2) == std::vector<float>(4, 13));
  const std::vector<NamedTensor> wrong{{"scale.w", filled({3}, 0)}};
  CHECK(code_of([&] { publish_tensors(*loaded.model, wrong); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] {
          publish_tensors(*loaded.model, std::vector<NamedTensor>{{"scale.w", Tensor()}});
        }) == ErrorCode::kInvalidArgument);
  CHECK(run(*loaded.model, 2) == std::vector<float>(4, 13));
}

TEST_CASE("tensor updates: an update in parts is complete at its end") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  const std::vector<NamedTensor> w{{"scale.w", filled({4}, 5)}}, b{{"scale.b", filled({4}, 1)}};
  {
    const auto update = model.begin_update({.gradual = true});
    stage_tensors(*update, w);
    CHECK(code_of([&] { update->finish(); }) == ErrorCode::kInvalidArgument);  // scale.b is missing
  }
  {
    const auto update = model.begin_update({.ignore = {"late"}, .gradual = true});
    stage_tensors(*update, w);
    update->set_label("parts");
    stage_tensors(*update, b, 1);
    CHECK(code_of([&] { stage_tensors(*update, w, 2); }) == ErrorCode::kInvalidArgument);  // scale.w is given twice
  }
  {
    const auto update = model.begin_update({.ignore = {"late"}, .label = "first", .gradual = true});
    stage_tensors(*update, w);
    stage_tensors(*update, std::vector<NamedTensor>{{"late", filled({2}, 1)}}, 1);
    stage_tensors(*update, b, 2);
    CHECK(code_of([&] { update->set_label("a\nb"); }) == ErrorCode::kInvalidArgument);
    update->set_label("parts");
    update->finish();
    CHECK(code_of([&] { update->set_label("later"); }) == ErrorCode::kFailedPrecondition);
  }
  CHECK(run(model, 2) == stored(2));
  model.commit_weights();
  CHECK(run(model, 2) == std::vector<float>(4, 11));
  CHECK(model.weight_sets().front().label == "parts");
  const auto whole = model.begin_update({.full = false});
  stage_tensors(*whole, w);
  CHECK(code_of([&] { stage_tensors(*whole, b, 1); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("tensor updates: no tensors at all are the same set under another label") {
  Loaded loaded("fake_model");
  publish_tensors(*loaded.model, {}, {.full = false, .label = "renamed"});
  CHECK(run(*loaded.model, 2) == stored(2));
  CHECK(loaded.model->weight_version() == 2);
  CHECK(loaded.model->weight_sets().front().label == "renamed");
}

TEST_CASE("tensor updates: memory of a device goes to the set's device, in any strides and from any device") {
  TempFolder folder;
  const auto model = on_device(folder);
  for (const Device device : {kGpu, kOther}) {
    DeviceFloats memory(64, device);
    memory.put(0, {1, 2, 3, 4});
    memory.put(16, {10, 20, 30, 40});
    const auto view = [&](int64_t at, int64_t stride) { return memory.whole.as_strided(Ints{4}, Ints{stride}, at); };
    publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", view(0, 1)}, {"scale.b", view(16, 1)}});
    memory.put(0, {0, 0, 0, 0});  // the set has its own
    CHECK(run(*model, 2) == std::vector<float>{12, 24, 36, 48});
    memory.put(0, {5, 6, 7, 8, 9, 10, 11, 12});
    publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", view(0, 2)}, {"scale.b", view(1, 2)}});
    CHECK(run(*model, 1) == std::vector<float>{11, 15, 19, 23});
    // Values to be scanned for NaN are copied to the host first.
    memory.put(0, {2, 2, 2, 2});
    publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", view(0, 1)}, {"scale.b", view(0, 1)}},
                    {.check_finite = true});
    CHECK(run(*model, 1) == std::vector<float>(4, 4));
    memory.put(1, {__builtin_nanf("")});
    CHECK(code_of([&] {
            publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", view(0, 1)}},
                            {.full = false, .check_finite = true});
          }) == ErrorCode::kInvalidArgument);
    CHECK(run(*model, 1) == std::vector<float>(4, 4));
  }
}

// Two values become one copy if the gap between them is less than 512 bytes and the second begins a multiple of 64
// bytes after the first. Cases vary gap, alignment, order, strides and overlap.
TEST_CASE("tensor updates: values that lie anywhere in one piece of a device's memory") {
  TempFolder folder;
  const auto model = on_device(folder);
  std::mt19937 random(3);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  constexpr int64_t kFloats = 600, kLine = 16, kMaxGap = 128;  // in floats
  for (int round = 0; round < 300; ++round) {
    DeviceFloats memory(kFloats, kGpu);
    std::vector<float> values(kFloats);
    for (float& value : values) value = static_cast<float>(draw(-50, 50));
    memory.put(0, values);
    const int64_t first = draw(0, 40), stride_w = draw(1, 8) == 1 ? 2 : 1, stride_b = draw(1, 8) == 1 ? 2 : 1;
    int64_t second = first + 4 + draw(-6, 2 * kMaxGap);
    if (draw(0, 1) == 1) second = first + draw(0, 2 * kMaxGap / kLine) * kLine;  // aligned
    if (draw(0, 3) == 0)
      second = first + kMaxGap + draw(0, 1) * kLine;  // the largest gap that is copied, or the next larger one
    second = std::clamp<int64_t>(second, 0, kFloats - 8);
    const bool turned = draw(0, 1) == 1;
    const int64_t w = turned ? second : first, b = turned ? first : second;
    publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", memory.whole.as_strided(Ints{4}, Ints{stride_w}, w)},
                                                     {"scale.b", memory.whole.as_strided(Ints{4}, Ints{stride_b}, b)}});
    memory.put(0, std::vector<float>(kFloats, -1));  // the set has its own
    std::vector<float> expected;
    for (int64_t i = 0; i < 4; ++i)
      expected.push_back(3 * values[static_cast<size_t>(w + i * stride_w)] +
                         values[static_cast<size_t>(b + i * stride_b)]);
    CAPTURE(w);
    CAPTURE(b);
    REQUIRE(run(*model, 3) == expected);
  }
}

TEST_CASE("tensor updates: parts from a device, and sets that share what is not named") {
  TempFolder folder;
  const auto model = on_device(folder);
  DeviceFloats memory(8, kGpu);
  memory.put(0, {3, 3, 3, 3, 1, 1, 1, 1});
  const NamedTensor w{"scale.w", memory.whole.as_strided(Ints{4}, Ints{1}, 0)};
  const NamedTensor b{"scale.b", memory.whole.as_strided(Ints{4}, Ints{1}, 4)};
  {
    const auto update = model->begin_update({.gradual = true});
    stage_tensors(*update, {&w, 1});
    stage_tensors(*update, {&b, 1}, 1);
    update->finish();
  }
  model->commit_weights();
  CHECK(run(*model, 2) == std::vector<float>(4, 7));
  memory.put(0, {9, 9, 9, 9});
  publish_tensors(*model, {&w, 1}, {.full = false});
  CHECK(run(*model, 2) == std::vector<float>(4, 19));
  CHECK(model->rollback_weights() == 4);
  CHECK(run(*model, 2) == std::vector<float>(4, 7));
}

TEST_CASE("tensor updates: a new set takes the memory of the one that goes, unless somebody has it") {
  TempFolder folder;
  const auto model = on_device(folder);
  const FakeDevices& fake = open_devices();
  DeviceFloats memory(8, kGpu);
  const NamedTensor w{"scale.w", memory.whole.as_strided(Ints{4}, Ints{1}, 0)};
  const NamedTensor b{"scale.b", memory.whole.as_strided(Ints{4}, Ints{1}, 4)};
  const std::vector<NamedTensor> both{w, b};
  const auto pieces = [&](float scale, const auto& how) {
    const int before = fake.lasting;
    memory.put(0, {scale, scale, scale, scale, 1, 1, 1, 1});
    how();
    memory.put(0, std::vector<float>(8, -1));
    CHECK(run(*model, 1) == std::vector<float>(4, scale + 1));
    return fake.lasting - before;
  };
  const auto whole = [&] { publish_tensors(*model, both); };
  CHECK(pieces(2, whole) == 1);
  CHECK(pieces(3, whole) == 1);  // the package's set goes, which had no memory of this size
  const int64_t live = fake.live;
  for (const float scale : {4.0f, 5.0f, 6.0f}) CHECK(pieces(scale, whole) == 0);
  CHECK(fake.live == live);
  // Values of the previous set are those that a rollback brings.
  model->rollback_weights();
  CHECK(run(*model, 1) == std::vector<float>(4, 6));
  model->rollback_weights();
  CHECK(run(*model, 1) == std::vector<float>(4, 7));
  // A reader has the set that is previous after the next commit, so the update after that takes new memory.
  const std::unique_ptr<WeightSetFile> reader = model->open_weights(WeightState::kActive);
  CHECK(pieces(7, whole) == 0);
  CHECK(pieces(8, whole) == 1);
  for (size_t i = 0; i < reader->entries().size(); ++i) {
    std::array<float, 4> values{};
    reader->read(i, std::as_writable_bytes(std::span(values)));
    CHECK(values[0] == (reader->entries()[i].name == "scale.w" ? 6 : 1));
  }
  // A set shares with its base what it does not name.
  const auto part = [&] { publish_tensors(*model, {&w, 1}, {.full = false}); };
  pieces(9, part);
  CHECK(pieces(10, whole) == 1);
  // Parts take the pieces of parts. Where a part has another size, it gets new memory.
  const auto gradual = [&] {
    const auto update = model->begin_update({.gradual = true});
    stage_tensors(*update, {&w, 1});
    stage_tensors(*update, {&b, 1}, 1);
    update->finish();
    model->commit_weights();
  };
  pieces(11, gradual);
  pieces(12, gradual);
  CHECK(pieces(13, gradual) == 0);
  CHECK(pieces(14, gradual) == 0);
  pieces(15, whole);
  CHECK(pieces(16, whole) == 1);
  // What comes through the host needs none of it.
  const int64_t then = fake.live;
  publish_tensors(*model, std::vector<NamedTensor>{{"scale.w", filled({4}, 20)}, {"scale.b", filled({4}, 1)}});
  CHECK(run(*model, 1) == std::vector<float>(4, 21));
  CHECK(fake.live <= then);
}

TEST_CASE("tensor updates: devices have names that other processes know") {
  open_devices();
  const std::vector<Device> devices = visible_devices(DeviceType::kCuda);
  REQUIRE(devices.size() == 2);
  CHECK(device_uuid(devices[1]) == "00000000-0000-0000-0000-000000000001");
  CHECK(code_of([] { device_uuid({DeviceType::kCuda, 7}); }) == ErrorCode::kInvalidArgument);
  const std::array<std::byte, kDeviceEventHandleBytes> nothing{};
  CHECK(code_of([&] { wait_for_device_event(nothing, {DeviceType::kCuda, 7}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { wait_for_device_event(nothing, devices[0]); }) == ErrorCode::kInvalidArgument);
}
