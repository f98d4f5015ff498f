// The C API: tensors on devices that tests/server/fake_cuda.cpp makes up.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include "fake_cuda.h"
#include "sconce/device_memory.h"
#include "src/c_api/tensors.h"
#include "tests/c_api/loaded.h"

using namespace sconce;
using namespace sconce::test;

namespace {

constexpr Device kSecond{DeviceType::kCuda, 1};

struct OnDevice {
  TempFolder folder;
  sconce_package* package = nullptr;
  sconce_model* model = nullptr;
  FakeKnobs* knobs = nullptr;

  OnDevice() {
    REQUIRE_MESSAGE(dlopen(SCONCE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL), dlerror());  // the runtime finds it by its name
    const std::string path = folder / "net.pt2";
    fake::write_package(path, {{"model", fake::model("fake_cuda")}});
    CHECK_OK(sconce_package_open(path.c_str(), &package));
    const char* const devices[] = {"cuda:1"};
    sconce_load_options options{};
    options.size = sizeof options;
    options.devices = devices;
    options.device_count = 1;
    CHECK_OK(sconce_model_load(package, &options, &model));
    REQUIRE(model);
    knobs = fake::loaded().back();
  }
  ~OnDevice() {
    CHECK_OK(sconce_model_free(model));
    sconce_package_free(package);
  }
};

// What a caller has on a device, as DLPack shows it.
struct Shown {
  Tensor tensor;
  std::vector<int64_t> shape;
  sconce_tensor shown{};
  explicit Shown(Tensor made) : tensor(std::move(made)), shape(tensor.sizes().begin(), tensor.sizes().end()) {
    shown.data = tensor.data();
    shown.device = {SCONCE_CUDA, tensor.device().index};
    shown.ndim = static_cast<int32_t>(shape.size());
    shown.dtype = {SCONCE_FLOAT, 32, 1};
    shown.shape = shape.data();
  }
};

}  // namespace

TEST_CASE("c api: inputs on a device are used there, and outputs stay there if asked to") {
  OnDevice on;
  on.knobs->write_input = true;  // adds 1 to the first element: in place, not in a copy
  const Shown input(copy_to(filled({2, 4}, 3), kSecond));
  const sconce_tensor* const inputs[] = {&input.shown};
  sconce_run_options options{};
  options.size = sizeof options;
  options.device_outputs = 1;
  sconce_managed_tensor* output = nullptr;
  CHECK_OK(sconce_model_run(on.model, inputs, 1, &output, 1, &options, nullptr));
  REQUIRE(output);
  CHECK(static_cast<int>(output->dl_tensor.device.device_type) == SCONCE_CUDA);
  CHECK(output->dl_tensor.device.device_id == 1);
  const Tensor answer = copy_to(c_api::view_of(&output->dl_tensor, "output"), Device{});
  for (int64_t c = 1; c < 4; ++c) CHECK(answer.data_as<float>()[c] == fake::expected(3, c));
  sconce_tensor_free(output);
  CHECK(copy_to(input.tensor, Device{}).data_as<float>()[0] == 4);
  CHECK_OK(sconce_model_run(on.model, inputs, 1, &output, 1, nullptr, nullptr));
  CHECK(static_cast<int>(output->dl_tensor.device.device_type) == SCONCE_CPU);
  CHECK(static_cast<float*>(output->dl_tensor.data)[1] == fake::expected(3, 1));
  sconce_tensor_free(output);
}

TEST_CASE("c api: weights come from tensors on a device") {
  OnDevice on;
  const Shown w(copy_to(filled({4}, 9), kSecond));
  const sconce_tensor* const tensors[] = {&w.shown};
  const char* const names[] = {"scale.w"};
  sconce_update_options options{};
  options.size = sizeof options;
  options.partial = 1;
  CHECK_OK(sconce_model_stage_tensors(on.model, names, tensors, 1, &options));
  CHECK_OK(sconce_model_commit(on.model, nullptr));
  const Floats input({2, 4}, 1);
  const sconce_tensor* const inputs[] = {&input.tensor};
  sconce_managed_tensor* output = nullptr;
  CHECK_OK(sconce_model_run(on.model, inputs, 1, &output, 1, nullptr, nullptr));
  REQUIRE(output);
  CHECK(static_cast<float*>(output->dl_tensor.data)[1] == 19);
  sconce_tensor_free(output);
  CHECK_FAILS(sconce_model_remove_replica(on.model, 0), SCONCE_FAILED_PRECONDITION, "");
}
