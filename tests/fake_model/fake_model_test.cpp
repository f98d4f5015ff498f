// The fake models themselves, loaded as real ones are: what other tests build on.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <unordered_map>

#include "fake_abi.h"
#include "fake_package.h"
#include "package_format/elf_image.h"
#include "package_format/weights_index.h"
#include "sconce/model.h"
#include "sconce/package.h"
#include "sconce/tensor.h"
#include "src/aoti_abi/abi_types.h"
#include "src/aoti_abi/guard.h"
#include "src/loader/library/shared_library.h"
#include "src/loader/preflight.h"
#include "tests/files.h"

using namespace sconce;
using ContainerHandle = AOTInductorModelContainerHandle;

namespace {

using Create = int32_t(ContainerHandle*, size_t, const char*, const char*);
using Run = int32_t(ContainerHandle, AtenTensorHandle*, size_t, AtenTensorHandle*, size_t, void*, void*);
using UpdatePairs = int32_t(ContainerHandle, const AOTInductorConstantMapEntry*, size_t, bool, bool);
using LastError = int32_t(const char**);

// A fake model with one container.
class Loaded {
 public:
  explicit Loaded(const std::string& name, bool create = true)
      : model(fake::model(name)),
        bytes(fake::library(model)),
        library(loader::SharedLibrary::load(ElfImage(bytes, name))),
        knobs(*library.function<FakeKnobsFunction>("fake_model_knobs")()) {
    if (create) REQUIRE(call<Create>("AOTInductorModelContainerCreateWithDevice", &container, 1, "cpu", nullptr) == 0);
  }
  ~Loaded() {
    if (container) call<int32_t(ContainerHandle)>("AOTInductorModelContainerDelete", container);
    CHECK(knobs.live_tensors == 0);
    CHECK(knobs.live_containers == 0);
    CHECK(fake::loaded().size() == 1);
  }
  template <class F, class... Args>
  int32_t call(const char* function, Args... args) const {
    return library.function<F>(function)(args...);
  }
  std::string last_error() const {
    const char* text = nullptr;
    call<LastError>("AOTInductorGetLastError", &text);
    return text;
  }
  // Rows of x, all with this value in every column. Returns the output, undefined if the run failed.
  Tensor run(int64_t rows, float value, const char* function = "AOTInductorModelContainerRunSingleThreaded") {
    const int64_t sizes[] = {rows, model.features};
    Tensor x = Tensor::empty(sizes, DType::kFloat32);
    for (int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = value;
    AtenTensorHandle input = aoti_abi::new_handle(x), output = nullptr;
    result = call<Run>(function, container, &input, 1, &output, 1, nullptr, nullptr);
    Tensor y = output ? *aoti_abi::tensor_of(output) : Tensor();
    aoti_abi::delete_handle(output);
    return y;
  }
  Tensor vector(float value) const {
    const int64_t sizes[] = {model.features};
    Tensor t = Tensor::empty(sizes, DType::kFloat32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = value;
    return t;
  }
  int32_t update(const char* function, const std::unordered_map<std::string, Tensor>& tensors, bool inactive,
                 bool full = false) {
    std::vector<AOTInductorConstantMapEntry> pairs;
    for (const auto& [name, tensor] : tensors) pairs.push_back({name.c_str(), aoti_abi::new_handle(tensor)});
    const int32_t code = call<UpdatePairs>(function, container, pairs.data(), pairs.size(), inactive, full);
    for (const auto& pair : pairs) aoti_abi::delete_handle(pair.handle);
    return code;
  }

  fake::Model model;
  std::vector<std::byte> bytes;
  loader::SharedLibrary library;
  FakeKnobs& knobs;
  ContainerHandle container = nullptr;
  int32_t result = 0;
};

void check_rows(const Tensor& y, int64_t rows, float x, float scale = 1, float extra = 0) {
  REQUIRE(y.defined());
  REQUIRE(y.dim() == 2);
  CHECK(y.size(0) == rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < y.size(1); i += 1 + y.size(1) / 64) {
      const float b = fake::expected(0, i), w = fake::expected(1, i) - b;
      CHECK(y.data_as<float>()[r * y.stride(0) + i * y.stride(1)] == x * w * scale + b + extra);
    }
}

}  // namespace

TEST_CASE("fake model: computes x * w + b for any batch, through both entry points") {
  Loaded m("fake_model");
  for (int64_t rows : {0, 1, 2, 7}) {
    check_rows(m.run(rows, 3), rows, 3);
    check_rows(m.run(rows, -2, "AOTInductorModelContainerRun"), rows, -2);
  }
  CHECK(m.knobs.runs == 8);
  CHECK(m.knobs.folds == 1);
  CHECK(m.knobs.live_tensors == 2);  // the constants
  CHECK(m.knobs.constants[0] != nullptr);
}

TEST_CASE("fake model: every form of weights") {
  {
    Loaded m("fake_appended");
    check_rows(m.run(2, 5), 2, 5);
  }
  {
    Loaded m("fake_large");
    check_rows(m.run(1, 2), 1, 2);
  }
  {
    Loaded m("fake_external");
    CHECK(!m.run(1, 1).defined());
    CHECK(m.last_error() == "the constants were never given");
    const std::vector<std::byte> blob = fake::weights(m.model);
    CHECK(m.call<int32_t(ContainerHandle, const uint8_t*)>("AOTInductorModelUpdateConstantsFromBlob", m.container,
                                                           reinterpret_cast<const uint8_t*>(blob.data())) == 0);
    check_rows(m.run(2, 5), 2, 5);
  }
  {
    Loaded m("fake_weightless");
    CHECK(!m.run(1, 1).defined());
    const Tensor w = m.vector(7), b = m.vector(-1);
    CHECK(m.update("AOTInductorModelContainerUpdateUserManagedConstantBufferPairs", {{"scale_w", w}, {"scale_b", b}},
                   false, true) == 0);
    const Tensor y = m.run(1, 2);
    REQUIRE(y.defined());
    CHECK(y.data_as<float>()[3] == 13);
    CHECK(m.knobs.constants[0] == w.data());  // used where they are
    CHECK(m.knobs.constants[1] == b.data());
  }
}

TEST_CASE("fake model: folded constants and buffers that runs write") {
  {
    Loaded m("fake_folded");
    check_rows(m.run(2, 3), 2, 3, /*scale=*/2);
    CHECK(m.knobs.folds == 1);
    CHECK(m.update("AOTInductorModelContainerUpdateConstantBufferPairs", {{"scale_w", m.vector(10)}}, false) == 0);
    CHECK(m.run(1, 1).data_as<float>()[0] == 20);  // folded again by itself
    CHECK(m.knobs.folds == 2);
  }
  Loaded m("fake_state");
  check_rows(m.run(1, 1), 1, 1);
  check_rows(m.run(1, 1), 1, 1, 1, /*extra=*/1);
  check_rows(m.run(1, 1), 1, 1, 1, /*extra=*/2);
}

TEST_CASE("fake model: two buffers, the inactive one is not seen before the swap") {
  Loaded m("fake_model");
  check_rows(m.run(1, 1), 1, 1);
  const char* update = "AOTInductorModelContainerUpdateConstantBufferPairs";
  CHECK(m.update(update, {{"scale_w", m.vector(3)}}, true, true) != 0);
  CHECK(m.last_error() == "Cannot find constants scale_b in constants_map!");
  CHECK(m.update(update, {{"scale_w", m.vector(3)}, {"scale_b", m.vector(4)}}, true, true) == 0);
  check_rows(m.run(1, 1), 1, 1);
  CHECK(m.call<int32_t(ContainerHandle)>("AOTInductorModelContainerSwapConstantBuffer", m.container) == 0);
  CHECK(m.run(1, 2).data_as<float>()[0] == 10);
}

TEST_CASE("fake model: fails when and how it is told") {
  Loaded m("fake_model");
  m.knobs.fail_in_runs = 2;
  CHECK(m.run(1, 1).defined());
  CHECK(!m.run(1, 1).defined());
  CHECK(m.result == 1);
  CHECK(m.last_error() == "fake model: told to fail in run");
  check_rows(m.run(1, 1), 1, 1);  // once
  CHECK(m.last_error().empty());

  const auto failed = [&](FakeFailure kind) {
    m.knobs.fail_kind = kind;
    m.knobs.fail_in_runs = 1;
    CHECK(!m.run(1, 1).defined());
    return m.last_error();
  };
  aoti_abi::take_error();
  CHECK(failed(FakeFailure::kShim).find("aoti_torch_get_size(tensor, 99, &size) API call failed at ") == 0);
  CHECK(aoti_abi::take_error().has_value());
  CHECK(failed(FakeFailure::kUnchecked).empty());
  CHECK(m.result == 0);  // nothing noticed: only the host knows
  CHECK(aoti_abi::take_error().has_value());
  CHECK(failed(FakeFailure::kUnknown) == "Unknown exception");
  CHECK(failed(FakeFailure::kCheck).find("Expected u0 <= 8 but received 9") != std::string::npos);
  aoti_abi::take_error();
  CHECK(!m.run(1, kFakeFailInput).defined());
  check_rows(m.run(1, 1), 1, 1);
}

TEST_CASE("fake model: a container that cannot be made leaves nothing behind") {
  Loaded m("fake_model", /*create=*/false);
  m.knobs.fail_in_creates = 1;
  const auto create = [&](const char* device) {
    return m.call<Create>("AOTInductorModelContainerCreateWithDevice", &m.container, 1, device, nullptr);
  };
  CHECK(create("cpu") == 1);
  CHECK(m.last_error() == "fake model: told to fail in create");
  CHECK(create("tpu") == 1);
  CHECK(m.last_error() == "invalid device: tpu");
  CHECK(m.container == nullptr);
  CHECK(m.knobs.live_tensors == 0);
}

TEST_CASE("fake model: knobs from the environment, and those of all loaded ones") {
  setenv("FAKE_MODEL_FAIL_IN_RUNS", "1", 1);
  Loaded m("fake_model");
  unsetenv("FAKE_MODEL_FAIL_IN_RUNS");
  CHECK(!m.run(1, 1).defined());
  const std::vector<FakeKnobs*> all = fake::loaded();
  REQUIRE(all.size() == 1);
  CHECK(all[0] == &m.knobs);
}

TEST_CASE("fake model: unloads, though each call made a thread-local object") {
  { Loaded("fake_model").run(1, 1); }
  CHECK(fake::loaded().empty());
}

TEST_CASE("fake model: packages of it open, with the signature of what is inside") {
  const TempFolder folder;
  const std::map<std::string, fake::Model> models{
      {"plain", fake::model("fake_model")},       {"folded", fake::model("fake_folded")},
      {"state", fake::model("fake_state")},       {"appended", fake::model("fake_appended")},
      {"external", fake::model("fake_external")}, {"weightless", fake::model("fake_weightless")}};
  fake::write_directory(folder / "all", models);
  fake::write_package(folder / "all.pt2", models);
  fake::write_shared_object(folder / "bare.so");
  for (const char* form : {"all", "all.pt2"}) {
    const auto package = Package::open(folder / form);
    REQUIRE(package->models().size() == models.size());
    for (const auto& [name, model] : models) {
      CAPTURE(name);
      const ModelSpec& spec = package->model(name);
      CHECK(spec.device_key == "cpu");
      CHECK(spec.march == "x86-64-v3");
      REQUIRE(spec.inputs.size() == 1);
      CHECK(spec.inputs[0].dtype == DType::kFloat32);
      REQUIRE(spec.inputs[0].dims.size() == 2);
      CHECK(!spec.inputs[0].dims[0].is_static());
      CHECK(spec.inputs[0].dims[1].max == model.features);
      CHECK(spec.call_spec.known);
      CHECK(spec.constants.size() == 2U + model.state + model.folded);
      CHECK(spec.constants[0].fqn == "scale.w");
      CHECK(loader::incompatibilities(spec, ElfImage(fake::library(model), spec.name)) == std::vector<std::string>{});
      if (model.weights == fake::Model::Weights::kNone) continue;
      const WeightsIndex index = locate_weights(*package, spec);
      REQUIRE(index.locations.size() == 2U + model.state);
      const std::vector<std::byte> stored = fake::weights(model);
      CHECK(std::memcmp(index.locations[0].data, stored.data(), stored.size()) == 0);
    }
    CHECK(package->model("appended").weights_form == WeightsForm::kAppended);
    CHECK(package->model("external").weights_form == WeightsForm::kBlob);
    CHECK(package->model("plain").weights_form == WeightsForm::kEmbedded);
    CHECK(package->model("weightless").weights_form == WeightsForm::kUserProvided);
  }
  // Without a source the library itself tells how it is called, once it is loaded.
  const auto bare = Package::open(folder / "bare.so");
  REQUIRE(bare->models().size() == 1);
  const CallSpec call = Model::load(bare)->info().spec.call_spec;
  CHECK(call.known);
  CHECK(call.args.leaves() + call.kwargs.leaves() == 1);
  CHECK(call.input_leaf == std::vector<size_t>{0});
}
