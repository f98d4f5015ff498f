// The C API: arguments that cannot be.
#include <doctest/doctest.h>

#include <limits>

#include "tests/c_api/loaded.h"

using namespace sconce;
using namespace sconce::test;

namespace {

// A struct of a later version: what this one does not know follows.
template <class T>
struct Later {
  T known;
  uint64_t more[2];
};

sconce_error* run(Handles& handles, const sconce_tensor* tensor, const sconce_run_options* options = nullptr) {
  const sconce_tensor* const inputs[] = {tensor};
  sconce_managed_tensor* output = nullptr;
  sconce_error* const error = sconce_model_run(handles.model, inputs, 1, &output, 1, options, nullptr);
  CHECK((output == nullptr) == (error != nullptr));
  sconce_tensor_free(output);
  return error;
}

}  // namespace

TEST_CASE("c api: null handles, texts and results are refused by name") {
  Handles handles;
  sconce_package* package = nullptr;
  sconce_model* model = nullptr;
  sconce_update* update = nullptr;
  sconce_tensor_info info{};
  info.size = sizeof info;
  size_t count = 0;
  char* text = nullptr;
  const char* name = nullptr;
  const auto refused = [](sconce_error* error, const char* word) { CHECK_FAILS(error, SCONCE_INVALID_ARGUMENT, word); };
  refused(sconce_package_open(nullptr, &package), "path");
  refused(sconce_package_open("x", nullptr), "out");
  refused(sconce_package_open_memory("x", 1, nullptr, nullptr, nullptr, nullptr), "out");
  refused(sconce_package_verify(nullptr), "package");
  refused(sconce_package_model_name(nullptr, 0, &name), "package");
  refused(sconce_package_model_name(handles.package, 1, &name), "model 1");
  refused(sconce_package_model_name(handles.package, 0, nullptr), "name");
  refused(sconce_package_check(nullptr, nullptr), "package");
  refused(sconce_package_inspect(handles.package, nullptr), "json");
  refused(sconce_package_input(handles.package, 0, 9, &info), "input 9");
  refused(sconce_model_load(nullptr, nullptr, &model), "package");
  refused(sconce_model_load(handles.package, nullptr, nullptr), "out");
  refused(sconce_model_get_info(handles.model, nullptr), "info");
  refused(sconce_model_input(nullptr, 0, &info), "model");
  refused(sconce_model_output(handles.model, 1, &info), "output 1");
  refused(sconce_model_constant(handles.model, 99, nullptr), "constant 99");
  refused(sconce_model_call_spec(nullptr, &text), "model");
  refused(sconce_model_run(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr), "model");
  refused(sconce_model_submit(handles.model, nullptr, 0, nullptr, nullptr, nullptr), "callback");
  refused(sconce_model_check_inputs(handles.model, nullptr, 1), "inputs");
  refused(sconce_model_add_replica(handles.model, nullptr, nullptr, 0, nullptr), "device");
  refused(sconce_model_add_replica(handles.model, "cpu", nullptr, 3, nullptr), "cpus");
  refused(sconce_model_replicas(handles.model, nullptr, 0, nullptr), "count");
  refused(sconce_model_replicas(handles.model, nullptr, 1, &count), "infos");
  refused(sconce_model_health(nullptr), "model");
  refused(sconce_model_begin_update(nullptr, nullptr, &update), "model");
  refused(sconce_model_begin_update(handles.model, nullptr, nullptr), "out");
  refused(sconce_update_declare(nullptr, nullptr, 0), "update");
  refused(sconce_update_write(nullptr, 0, nullptr), "update");
  refused(sconce_update_memory(nullptr, 0, nullptr, nullptr), "update");
  refused(sconce_update_complete(nullptr, 0), "update");
  refused(sconce_update_finish(nullptr), "update");
  refused(sconce_model_stage_tensors(handles.model, nullptr, nullptr, 1, nullptr), "names");
  refused(sconce_model_stage_file(handles.model, nullptr, nullptr, nullptr), "path");
  refused(sconce_model_commit(nullptr, nullptr), "model");
  refused(sconce_model_abort(nullptr), "model");
  refused(sconce_model_rollback(nullptr, nullptr), "model");
  refused(sconce_model_release_previous(nullptr), "model");
  refused(sconce_model_digest(handles.model, SCONCE_ACTIVE, nullptr), "text");
  refused(sconce_model_digest(handles.model, static_cast<sconce_set_state>(3), &text), "state 3");
  refused(sconce_model_sets(nullptr, nullptr, 0, &count), "model");
  CHECK(!package);
  CHECK(!model);
  CHECK(!update);
  CHECK(!text);
  // What takes null.
  CHECK_OK(sconce_model_free(nullptr));
  sconce_package_free(nullptr);
  sconce_update_free(nullptr);
  sconce_error_free(nullptr);
  sconce_string_free(nullptr);
  sconce_tensor_free(nullptr);
  sconce_model_give_back_idle_memory(nullptr);
  CHECK(sconce_package_model_count(nullptr) == 0);
  CHECK(sconce_model_generation(nullptr) == 0);
  CHECK(sconce_error_code(nullptr) == SCONCE_OK);
  CHECK(std::string(sconce_error_text(nullptr)).empty());
  CHECK(std::string(sconce_code_name(SCONCE_OK)) == "OK");
  CHECK(std::string(sconce_code_name(SCONCE_IO)) == "IO");
  CHECK(std::string(sconce_code_name(static_cast<sconce_code>(99))) == "UNKNOWN");
  CHECK_FAILS(sconce_package_open("/nowhere/net.pt2", &package), SCONCE_IO, "/nowhere/net.pt2");
}

TEST_CASE("c api: structs of other versions") {
  Handles handles;
  sconce_load_options options{};
  sconce_model* model = nullptr;
  for (const size_t size : {size_t{0}, size_t{8}, sizeof options - 8, sizeof options + 1, SIZE_MAX}) {
    options.size = size;
    CHECK_FAILS(sconce_model_load(handles.package, &options, &model), SCONCE_INVALID_ARGUMENT, "sizeof");
  }
  Later<sconce_load_options> later{};
  later.known.size = sizeof later;
  later.more[1] = 1;
  CHECK_FAILS(sconce_model_load(handles.package, &later.known, &model), SCONCE_INVALID_ARGUMENT, "does not know");
  later.more[1] = 0;
  CHECK_OK(sconce_model_load(handles.package, &later.known, &model));
  Later<sconce_model_info> info{};
  info.known.size = sizeof info;
  info.more[0] = info.more[1] = 77;
  CHECK_OK(sconce_model_get_info(model, &info.known));
  CHECK(info.known.inputs == 1);
  CHECK(info.known.size == sizeof info);
  CHECK(info.more[0] == 0);
  CHECK(info.more[1] == 0);
  Later<sconce_replica_info> replicas[2]{};
  replicas[0].known.size = sizeof replicas[0];
  replicas[1].more[1] = 77;
  CHECK_OK(sconce_model_add_replica(model, "cpu", nullptr, 0, nullptr));
  size_t count = 0;
  CHECK_OK(sconce_model_replicas(model, &replicas[0].known, 2, &count));
  CHECK(replicas[1].known.index == 1);
  CHECK(replicas[1].more[1] == 0);
  CHECK_OK(sconce_model_free(model));
}

TEST_CASE("c api: options that cannot be") {
  Handles handles;
  sconce_model* model = nullptr;
  const auto refused = [&](auto change, const char* word) {
    sconce_load_options options{};
    options.size = sizeof options;
    change(options);
    CHECK_FAILS(sconce_model_load(handles.package, &options, &model), SCONCE_INVALID_ARGUMENT, word);
  };
  const char* const bad_devices[] = {"cpu", "gpu"};
  const char* const null_device[] = {nullptr};
  const int32_t core[] = {-1};
  refused([](auto& o) { o.replicas = -1; }, "replicas");
  refused([](auto& o) { o.threads = -1; }, "threads");
  refused([](auto& o) { o.cuda_graphs = -2; }, "cuda_graphs");
  refused([](auto& o) { o.verify = 2; }, "verify");
  refused([](auto& o) { o.device_count = 1; }, "devices");
  refused([&](auto& o) { o.devices = bad_devices, o.device_count = 2; }, "gpu");
  refused([&](auto& o) { o.devices = null_device, o.device_count = 1; }, "devices[0]");
  refused([&](auto& o) { o.devices = bad_devices, o.device_count = SIZE_MAX; }, "devices");
  refused([&](auto& o) { o.cpus = core, o.cpu_count = 1; }, "core -1");
  refused([](auto& o) { o.op_library_count = 1; }, "op_libraries");
  sconce_load_options options{};
  options.size = sizeof options;
  options.model_name = "absent";
  CHECK_FAILS(sconce_model_load(handles.package, &options, &model), SCONCE_NOT_FOUND, "absent");
  CHECK(model == nullptr);
}

TEST_CASE("c api: tensors that cannot be") {
  Handles handles;
  const Floats good({2, 4}, 1);
  CHECK_OK(run(handles, &good.tensor));
  CHECK_FAILS(run(handles, nullptr), SCONCE_INVALID_ARGUMENT, "input 0: the tensor is null");
  const auto refused = [&](auto change, const char* word) {
    int64_t shape[] = {2, 4}, strides[] = {4, 1};
    sconce_tensor tensor = good.tensor;
    tensor.shape = shape;
    change(tensor, shape, strides);
    std::string reason;
    CHECK(code_of(run(handles, &tensor), &reason) == SCONCE_INVALID_ARGUMENT);
    CHECK_MESSAGE(reason.find("input 0") != std::string::npos, reason);
    CHECK_MESSAGE(reason.find(word) != std::string::npos, reason);
  };
  refused([](auto& t, auto*, auto*) { t.data = nullptr; }, "data is null");
  refused([](auto& t, auto*, auto*) { t.shape = nullptr; }, "shape is null");
  refused([](auto& t, auto*, auto*) { t.ndim = -1; }, "-1");
  refused([](auto& t, auto*, auto*) { t.ndim = 65; }, "65");
  refused([](auto& t, auto*, auto*) { t.ndim = INT32_MAX; }, "dimensions");
  refused([](auto& t, auto*, auto*) { t.ndim = 1; }, "");
  refused([](auto&, int64_t* s, auto*) { s[0] = -1; }, "negative");
  refused([](auto&, int64_t* s, auto*) { s[0] = s[1] = int64_t{1} << 40; }, "overflow");
  refused([](auto&, int64_t* s, auto*) { s[0] = INT64_MAX; }, "");
  refused([](auto& t, auto*, int64_t* s) { t.strides = s, s[1] = -1; }, "stride");
  refused([](auto& t, auto*, int64_t* s) { t.strides = s, s[0] = INT64_MAX; }, "");
  refused([](auto& t, auto*, auto*) { t.byte_offset = 2; }, "aligned");
  refused([](auto& t, auto*, auto*) { t.byte_offset = UINT64_MAX - 3; }, "byte_offset");
  refused([](auto& t, auto*, auto*) { t.dtype.code = 3; }, "code 3");
  refused([](auto& t, auto*, auto*) { t.dtype.code = 255; }, "code 255");
  refused([](auto& t, auto*, auto*) { t.dtype.bits = 31; }, "31");
  refused([](auto& t, auto*, auto*) { t.dtype.lanes = 4; }, "4 lanes");
  refused([](auto& t, auto*, auto*) { t.dtype.bits = 64; }, "float32");
  refused([](auto& t, auto*, auto*) { t.device.device_type = static_cast<decltype(t.device.device_type)>(7); }, "7");
  refused([](auto& t, auto*, auto*) { t.device = {SCONCE_CUDA, 0}; }, "cuda");
  refused([](auto& t, auto*, auto*) { t.device = {SCONCE_CUDA, -1}; }, "-1");
  refused([](auto& t, auto*, auto*) { t.device = {SCONCE_CUDA, 1000}; }, "1000");
  refused([](auto&, int64_t* s, auto*) { s[1] = 3; }, "4");
  CHECK(handles.run(3) == stored(3));
}

TEST_CASE("c api: counts, options and room of a run that cannot be") {
  Handles handles;
  const Floats good({2, 4}, 1);
  const sconce_tensor* const inputs[] = {&good.tensor, &good.tensor};
  sconce_managed_tensor* outputs[2] = {};
  const auto refused = [&](size_t count, sconce_managed_tensor** to, size_t room, const char* word) {
    CHECK_FAILS(sconce_model_run(handles.model, inputs, count, to, room, nullptr, nullptr), SCONCE_INVALID_ARGUMENT,
                word);
  };
  refused(0, outputs, 1, "expected 1 inputs");
  refused(2, outputs, 1, "expected 1 inputs");
  refused(SIZE_MAX, outputs, 1, "input_count");
  refused(1, outputs, 0, "outputs");
  refused(1, outputs, 2, "outputs");
  refused(1, nullptr, 1, "outputs is null");
  sconce_run_options options{};
  CHECK_FAILS(run(handles, &good.tensor, &options), SCONCE_INVALID_ARGUMENT, "sizeof");
  options.size = sizeof options;
  options.device_outputs = 5;
  CHECK_FAILS(run(handles, &good.tensor, &options), SCONCE_INVALID_ARGUMENT, "device_outputs");
  sconce_run_info info{};
  CHECK_FAILS(sconce_model_run(handles.model, inputs, 1, outputs, 1, nullptr, &info), SCONCE_INVALID_ARGUMENT, "info");
  CHECK(outputs[0] == nullptr);
}

TEST_CASE("c api: updates that cannot be") {
  Handles handles;
  sconce_update* update = nullptr;
  CHECK_OK(sconce_model_begin_update(handles.model, nullptr, &update));
  REQUIRE(update);
  const int64_t four[] = {4}, negative[] = {-4}, three[] = {3};
  const auto declared = [&](sconce_weight entry) { return sconce_update_declare(update, &entry, 1); };
  const sconce_dtype f32 = {SCONCE_FLOAT, 32, 1};
  CHECK_FAILS(sconce_update_declare(update, nullptr, 1), SCONCE_INVALID_ARGUMENT, "entries");
  CHECK_FAILS(declared({nullptr, f32, 1, four}), SCONCE_INVALID_ARGUMENT, "entry 0");
  CHECK_FAILS(declared({"scale.w", {9, 9, 9}, 1, four}), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(declared({"scale.w", f32, -1, four}), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(declared({"scale.w", f32, 1, nullptr}), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(declared({"scale.w", f32, 1, negative}), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(declared({"scale.w", f32, 1, three}), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(declared({"absent", f32, 1, four}), SCONCE_NOT_FOUND, "absent");
  void* memory = nullptr;
  CHECK_FAILS(sconce_update_memory(update, 0, &memory, nullptr), SCONCE_INVALID_ARGUMENT, "entry 0");
  const sconce_weight both[] = {{"scale.w", f32, 1, four}, {"scale.b", f32, 1, four}};
  CHECK_OK(sconce_update_declare(update, both, 2));
  const Floats small({3}, 1), right({4}, 1);
  CHECK_FAILS(sconce_update_write(update, 0, &small.tensor), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_FAILS(sconce_update_write(update, 2, &right.tensor), SCONCE_INVALID_ARGUMENT, "entry 2");
  CHECK_FAILS(sconce_update_write(update, 0, nullptr), SCONCE_INVALID_ARGUMENT, "scale.w");
  CHECK_OK(sconce_update_write(update, 0, &right.tensor));
  sconce_update_free(update);
  CHECK(handles.run(3) == stored(3));
}
