// The C API: packages, models, runs.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "sconce/model.h"
#include "src/c_api/tensors.h"
#include "tests/c_api/loaded.h"

using namespace sconce;
using namespace sconce::test;

extern "C" size_t sizes_with_dlpack_before(const void*, const void*, sconce_dtype);
extern "C" size_t sizes_with_dlpack_after(const void*, const void*, sconce_dtype);
extern "C" int use_all_in_c(const char* package, const char* updated);

namespace {

template <class T>
T sized() {
  T value{};
  value.size = sizeof value;
  return value;
}

std::string taken(char* text) {
  const std::string copy = text ? text : "";
  sconce_string_free(text);
  return copy;
}

}  // namespace

TEST_CASE("c api: a model says what it is") {
  Handles handles;
  CHECK(sconce_package_model_count(handles.package) == 1);
  const char* name = nullptr;
  CHECK_OK(sconce_package_model_name(handles.package, 0, &name));
  CHECK(std::string(name) == "model");
  auto about = sized<sconce_model_info>();
  CHECK_OK(sconce_model_get_info(handles.model, &about));
  CHECK(about.inputs == 1);
  CHECK(about.outputs == 1);
  CHECK(about.constants == 2);
  CHECK(about.replicas == 1);
  CHECK(about.load_ns > 0);
  CHECK(about.constant_bytes > 0);
  auto input = sized<sconce_tensor_info>(), from_package = sized<sconce_tensor_info>();
  CHECK_OK(sconce_model_input(handles.model, 0, &input));
  CHECK_OK(sconce_package_input(handles.package, 0, 0, &from_package));
  for (const sconce_tensor_info* info : {&input, &from_package}) {
    CHECK(info->dtype_known == 1);
    CHECK(info->dtype.code == SCONCE_FLOAT);
    CHECK(info->dtype.bits == 32);
    CHECK(std::string(info->dtype_name) == "float32");
    REQUIRE(info->ndim == 2);
    CHECK(info->dims[0].max > info->dims[0].min);
    CHECK(std::string(info->dims[0].symbol) != "");
    CHECK(info->dims[1].min == 4);
    CHECK(info->dims[1].max == 4);
  }
  auto constant = sized<sconce_constant_info>();
  CHECK_OK(sconce_model_constant(handles.model, 0, &constant));
  CHECK(std::string(constant.name) == "scale.w");
  REQUIRE(constant.ndim == 1);
  CHECK(constant.shape[0] == 4);
  char* json = nullptr;
  CHECK_OK(sconce_package_inspect(handles.package, &json));
  const std::string text = taken(json);
  CHECK_MESSAGE(text.find("\"fqn\":\"scale.w\"") != std::string::npos, text);
  CHECK(text.find("\"shape\":[{\"symbol\":") != std::string::npos);
  CHECK_OK(sconce_model_call_spec(handles.model, &json));
  CHECK(taken(json) != "");
  CHECK_OK(sconce_package_verify(handles.package));
  CHECK_OK(sconce_package_check(handles.package, nullptr));
  CHECK_OK(sconce_model_health(handles.model));
  CHECK(std::string(sconce_version()) == "0.1.0");
  sconce_model_give_back_idle_memory(handles.model);
}

TEST_CASE("c api: runs answer as in C++, and outputs outlive the model") {
  sconce_managed_tensor* kept = nullptr;
  {
    Handles handles("fake_model", 2);
    auto info = sized<sconce_run_info>();
    CHECK(handles.run(3, &info) == stored(3));
    CHECK(info.weight_version == 1);
    CHECK(info.replica >= 0);
    CHECK(info.compute_ns > 0);
    CHECK(std::string(info.label).empty());
    const Floats input({5, 4}, 2);
    const sconce_tensor* const inputs[] = {&input.tensor};
    CHECK_OK(sconce_model_check_inputs(handles.model, inputs, 1));
    auto options = sized<sconce_run_options>();
    options.device_outputs = 1;  // on the lane
    CHECK_OK(sconce_model_run(handles.model, inputs, 1, &kept, 1, &options, nullptr));
  }
  REQUIRE(kept);
  CHECK(kept->version.major == 1);
  CHECK(kept->flags == 0);
  const auto& tensor = kept->dl_tensor;
  CHECK(tensor.ndim == 2);
  CHECK(tensor.shape[0] == 5);
  CHECK(tensor.strides[0] == 4);
  CHECK(static_cast<const float*>(tensor.data)[17] == fake::expected(2, 1));
  kept->deleter(kept);
}

TEST_CASE("c api: inputs with strides and offsets are read in place") {
  Handles handles;
  Floats input({4, 4}, 0);
  for (int i = 0; i < 16; ++i) input.values[static_cast<size_t>(i)] = static_cast<float>(i);
  int64_t shape[] = {2, 4}, strides[] = {8, 1};  // rows 1 and 3
  sconce_tensor tensor = input.tensor;
  tensor.shape = shape;
  tensor.strides = strides;
  tensor.byte_offset = 16;
  const sconce_tensor* const inputs[] = {&tensor};
  const auto run = [&] {
    sconce_managed_tensor* output = nullptr;
    std::string reason;
    const sconce_code code = code_of(sconce_model_run(handles.model, inputs, 1, &output, 1, nullptr, nullptr), &reason);
    std::vector<float> row;
    if (output)
      row.assign(static_cast<float*>(output->dl_tensor.data), static_cast<float*>(output->dl_tensor.data) + 4);
    sconce_tensor_free(output);
    if (code != SCONCE_OK) CHECK_MESSAGE(reason.find("stride") != std::string::npos, reason);
    return row;
  };
  strides[0] = 4;
  const std::vector<float> row = run();
  REQUIRE(row.size() == 4);
  for (int64_t c = 0; c < 4; ++c) CHECK(row[static_cast<size_t>(c)] == fake::expected(4 + static_cast<float>(c), c));
  strides[0] = 8;
  run();  // as the signature allows, or an error that names the stride
}

TEST_CASE("c api: a submitted run calls back once, and every run has its own answer") {
  Handles handles("fake_model", 2);
  struct Call {
    std::promise<std::vector<float>> answer;
    std::string error;
    sconce_model* model;
    sconce_code nested = SCONCE_OK, freed = SCONCE_OK;
    uint64_t weight_version = 0;
  };
  const auto callback = [](void* context, sconce_error* error, sconce_managed_tensor** outputs, size_t count,
                           const sconce_run_info* info) {
    auto& call = *static_cast<Call*>(context);
    std::vector<float> row;
    if (count == 1) {
      const auto* y = static_cast<const float*>(outputs[0]->dl_tensor.data);
      row.assign(y, y + 4);
      sconce_tensor_free(outputs[0]);
    }
    call.weight_version = info->weight_version;
    call.nested = code_of(sconce_model_run(call.model, nullptr, 0, nullptr, 0, nullptr, nullptr));
    call.freed = code_of(sconce_model_free(call.model));
    call.error = sconce_error_text(error);
    sconce_error_free(error);
    call.answer.set_value(row);
  };
  for (int i = 0; i < 20; ++i) {
    Call call;
    call.model = handles.model;
    auto future = call.answer.get_future();
    const Floats input({1, 4}, static_cast<float>(i));
    {
      std::vector<int64_t> shape{1, 4};  // gone before the run
      sconce_tensor tensor = input.tensor;
      tensor.shape = shape.data();
      const sconce_tensor* const inputs[] = {&tensor};
      CHECK_OK(sconce_model_submit(handles.model, inputs, 1, nullptr, callback, &call));
    }
    CHECK(future.get() == stored(static_cast<float>(i)));
    CHECK(call.weight_version == 1);
    CHECK(call.nested == SCONCE_FAILED_PRECONDITION);
    CHECK(call.freed == SCONCE_FAILED_PRECONDITION);
  }
  Call wrong;
  wrong.model = handles.model;
  auto future = wrong.answer.get_future();
  const Floats input({1, 3}, 1);
  const sconce_tensor* const inputs[] = {&input.tensor};
  CHECK_OK(sconce_model_submit(handles.model, inputs, 1, nullptr, callback, &wrong));
  CHECK(future.get().empty());
  CHECK_MESSAGE(wrong.error.find("input 0") != std::string::npos, wrong.error);
  handles.knobs->fail_in_runs = 1;
  Call failing;
  failing.model = handles.model;
  future = failing.answer.get_future();
  const Floats good({1, 4}, 1);
  const sconce_tensor* const good_inputs[] = {&good.tensor};
  CHECK_OK(sconce_model_submit(handles.model, good_inputs, 1, nullptr, callback, &failing));
  CHECK(future.get().empty());
  CHECK(!failing.error.empty());
}

TEST_CASE("c api: freeing a model waits for what was submitted") {
  std::atomic<int> calls{0};
  const Floats input({1, 4}, 1);
  const sconce_tensor* const inputs[] = {&input.tensor};
  {
    Handles handles;
    handles.knobs->sleep_us = 2000;
    for (int i = 0; i < 10; ++i)
      CHECK_OK(sconce_model_submit(
          handles.model, inputs, 1, nullptr,
          [](void* context, sconce_error* error, sconce_managed_tensor** outputs, size_t count,
             const sconce_run_info*) {
            for (size_t at = 0; at < count; ++at) sconce_tensor_free(outputs[at]);
            sconce_error_free(error);
            ++*static_cast<std::atomic<int>*>(context);
          },
          &calls));
  }
  CHECK(calls == 10);
}

TEST_CASE("c api: an output that is an input is copied, and a constant is read-only") {
  Tensor input = filled({2, 2}, 7), other = filled({2}, 1), constant = filled({3}, 5);
  constant.storage()->set_immutable(true);
  std::vector<Tensor> outputs{input, other, constant, Tensor()};
  const void* const own = other.data();
  std::array<sconce_managed_tensor*, 4> given{};
  c_api::give(outputs, {&input, 1}, given.data());
  CHECK(given[0]->dl_tensor.data != input.data());
  CHECK(static_cast<float*>(given[0]->dl_tensor.data)[3] == 7);
  CHECK(given[1]->dl_tensor.data == own);
  CHECK(given[1]->flags == 0);
  CHECK(given[2]->flags == 1);
  CHECK(given[3] == nullptr);
  for (sconce_managed_tensor* tensor : given) sconce_tensor_free(tensor);
}

TEST_CASE("c api: every element type there and back"){
#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip)                \
  {                                                                                \
    const sconce_dtype dtype = c_api::dlpack_of(DType::enumerator);                \
    CHECK(c_api::dtype_of(dtype, "x") == DType::enumerator);                       \
    CHECK(size_t{dtype.bits} * dtype.lanes == 8 * dtype_bytes(DType::enumerator)); \
  }
    SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
}

TEST_CASE("c api: a package in memory, whose bytes are released at the end and only then") {
  std::string bytes = fake_bytes("fake_model");
  int released = 0;
  const auto release = [](void* context) { ++*static_cast<int*>(context); };
  sconce_package* package = nullptr;
  CHECK_OK(sconce_package_open_memory(bytes.data(), bytes.size(), nullptr, release, &released, &package));
  sconce_model* model = nullptr;
  CHECK_OK(sconce_model_load(package, nullptr, &model));
  sconce_package_free(package);
  CHECK(released == 0);
  const Floats input({1, 4}, 3);
  const sconce_tensor* const inputs[] = {&input.tensor};
  sconce_managed_tensor* output = nullptr;
  CHECK_OK(sconce_model_run(model, inputs, 1, &output, 1, nullptr, nullptr));
  CHECK(static_cast<float*>(output->dl_tensor.data)[2] == fake::expected(3, 2));
  sconce_tensor_free(output);
  CHECK_OK(sconce_model_free(model));
  CHECK(released == 1);
  package = nullptr;
  CHECK_FAILS(sconce_package_open_memory("no package", 10, "the bytes", release, &released, &package),
              SCONCE_UNSUPPORTED, "the bytes");
  CHECK(released == 2);
  CHECK_FAILS(sconce_package_open_memory(nullptr, 10, nullptr, release, &released, &package), SCONCE_INVALID_ARGUMENT,
              "bytes");
  CHECK(released == 3);
  CHECK(package == nullptr);
}

TEST_CASE("c api: a path that holds no package is refused with the path and the reason") {
  const TempFolder folder;
  folder.write("models/a.pt2", fake_bytes("fake_model"));
  const std::string none = folder / "none.pt2", empty = folder.write("empty.pt2", ""), models = folder / "models";
  const std::string text = folder.write("text.pt2", "hello");
  sconce_package* package = nullptr;
  CHECK_FAILS(sconce_package_open(none.c_str(), &package), SCONCE_IO,
              "cannot open file: " + none + ": No such file or directory");
  CHECK_FAILS(sconce_package_open(empty.c_str(), &package), SCONCE_CORRUPT_PACKAGE, "file is empty: " + empty);
  CHECK_FAILS(sconce_package_open(text.c_str(), &package), SCONCE_UNSUPPORTED,
              "file is neither a package nor a model library: " + text);
  CHECK_FAILS(sconce_package_open(models.c_str(), &package), SCONCE_UNSUPPORTED, models + ": name a file in it: a.pt2");
  CHECK(package == nullptr);
}

TEST_CASE("c api: replicas come and go") {
  Handles handles;
  int32_t index = -1;
  CHECK_OK(sconce_model_add_replica(handles.model, "cpu", nullptr, 0, &index));
  CHECK(index == 1);
  size_t count = 0;
  CHECK_OK(sconce_model_replicas(handles.model, nullptr, 0, &count));
  CHECK(count == 2);
  std::array<sconce_replica_info, 3> infos{};
  infos[0].size = sizeof infos[0];
  CHECK_OK(sconce_model_replicas(handles.model, infos.data(), 3, &count));
  CHECK(infos[1].index == 1);
  CHECK(infos[1].size == sizeof infos[1]);
  CHECK(std::string(infos[1].device) == "cpu");
  CHECK(std::string(infos[1].failure).empty());
  CHECK_OK(sconce_model_remove_replica(handles.model, index));
  CHECK_FAILS(sconce_model_remove_replica(handles.model, 7), SCONCE_NOT_FOUND, "7");
  CHECK_FAILS(sconce_model_remove_replica(handles.model, 0), SCONCE_FAILED_PRECONDITION, "");
  CHECK_FAILS(sconce_model_add_replica(handles.model, "tpu", nullptr, 0, nullptr), SCONCE_INVALID_ARGUMENT, "tpu");
}

TEST_CASE("c api: dlpack.h before and after it, and a program in C11") {
  const size_t sizes = sizeof(sconce_tensor) * 1000000 + sizeof(sconce_managed_tensor) * 1000 + sizeof(sconce_dtype);
  CHECK(sizes_with_dlpack_before(nullptr, nullptr, {}) == sizes);
  CHECK(sizes_with_dlpack_after(nullptr, nullptr, {}) == sizes);
  const TempFolder folder;
  const std::string path = folder / "net.pt2";
  fake::write_package(path, {{"model", fake::model("fake_model")}});
  CHECK(use_all_in_c(path.c_str(), (folder / "absent.safetensors").c_str()) == 0);
}
