// The C API: weights.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sconce/tensor_files.h"
#include "tests/c_api/loaded.h"

using namespace sconce;
using namespace sconce::test;

namespace {

constexpr sconce_dtype kFloat32 = {SCONCE_FLOAT, 32, 1};

std::string digest(const sconce_model* model, sconce_set_state state) {
  char* text = nullptr;
  CHECK_OK(sconce_model_digest(model, state, &text));
  const std::string copy = text ? text : "";
  sconce_string_free(text);
  return copy;
}

}  // namespace

TEST_CASE("c api: weights in steps, from memory and from tensors with strides") {
  Handles handles("fake_model", 2);
  const std::string before = digest(handles.model, SCONCE_ACTIVE);
  CHECK(before.starts_with("sha-256:"));
  sconce_update_options options{};
  options.size = sizeof options;
  options.label = "step-7";
  options.check_finite = 1;
  sconce_update* update = nullptr;
  CHECK_OK(sconce_model_begin_update(handles.model, &options, &update));
  sconce_update* second = nullptr;
  CHECK_FAILS(sconce_model_begin_update(handles.model, &options, &second), SCONCE_BUSY, "step-7");
  CHECK(second == nullptr);
  const int64_t shape[] = {4};
  const sconce_weight entries[] = {{"scale.w", kFloat32, 1, shape}, {"scale.b", kFloat32, 1, shape}};
  CHECK_OK(sconce_update_declare(update, entries, 2));
  void* memory = nullptr;
  size_t size = 0;
  CHECK_OK(sconce_update_memory(update, 0, &memory, &size));
  REQUIRE(size == 16);
  const float w[] = {2, 2, 2, 2};
  std::memcpy(memory, w, sizeof w);
  CHECK_OK(sconce_update_complete(update, 0));
  CHECK_FAILS(sconce_update_finish(update), SCONCE_FAILED_PRECONDITION, "scale.b");
  Floats spread({8}, 1);
  for (size_t i = 1; i < 8; i += 2) spread.values[i] = 99;  // between the elements
  int64_t strides[] = {2}, four[] = {4};
  sconce_tensor every_second = spread.tensor;
  every_second.shape = four;
  every_second.strides = strides;
  CHECK_OK(sconce_update_write(update, 1, &every_second));
  CHECK_OK(sconce_update_finish(update));
  sconce_update_free(update);

  CHECK(handles.run(3) == stored(3));
  std::array<sconce_set_info, 3> sets{};
  sets[0].size = sizeof sets[0];
  size_t count = 0;
  CHECK_OK(sconce_model_sets(handles.model, sets.data(), sets.size(), &count));
  REQUIRE(count == 2);
  CHECK(sets[0].state == SCONCE_ACTIVE);
  CHECK(sets[0].generation == 1);
  CHECK(sets[1].state == SCONCE_STAGED);
  CHECK(std::string(sets[1].label) == "step-7");
  CHECK(sets[1].since_ns > int64_t{1'600'000'000} * 1'000'000'000);
  const std::string staged = digest(handles.model, SCONCE_STAGED);
  CHECK(staged != before);

  uint64_t generation = 0;
  CHECK_OK(sconce_model_commit(handles.model, &generation));
  CHECK(generation == 2);
  sconce_run_info info{};
  info.size = sizeof info;
  CHECK(handles.run(3, &info) == std::vector<float>(4, 7));
  CHECK(std::string(info.label) == "step-7");
  CHECK(digest(handles.model, SCONCE_ACTIVE) == staged);
  CHECK_OK(sconce_model_rollback(handles.model, &generation));
  CHECK(generation == 3);
  CHECK(handles.run(3) == stored(3));
  CHECK_OK(sconce_model_release_previous(handles.model));
  CHECK_FAILS(sconce_model_rollback(handles.model, nullptr), SCONCE_FAILED_PRECONDITION, "previous");
  CHECK_FAILS(sconce_model_commit(handles.model, nullptr), SCONCE_FAILED_PRECONDITION, "staged");
  CHECK_FAILS(sconce_model_abort(handles.model), SCONCE_FAILED_PRECONDITION, "staged");
}

TEST_CASE("c api: an update that is freed unfinished leaves nothing, and one whose model was freed goes on") {
  Handles handles;
  sconce_update* update = nullptr;
  CHECK_OK(sconce_model_begin_update(handles.model, nullptr, &update));
  sconce_update_free(update);
  sconce_model* other = nullptr;
  CHECK_OK(sconce_model_load(handles.package, nullptr, &other));
  CHECK_OK(sconce_model_begin_update(other, nullptr, &update));
  CHECK_OK(sconce_model_free(other));
  const int64_t shape[] = {4};
  const sconce_weight entries[] = {{"scale.w", kFloat32, 1, shape}, {"scale.b", kFloat32, 1, shape}};
  CHECK_OK(sconce_update_declare(update, entries, 2));
  sconce_update_free(update);
  CHECK(handles.run(3) == stored(3));
}

TEST_CASE("c api: weights from tensors and files in one call") {
  Handles handles;
  const Floats w(std::vector<float>{2, 2, 2, 2}), b(std::vector<float>{1, 1, 1, 1});
  const sconce_tensor* const tensors[] = {&w.tensor, &b.tensor};
  const char* const names[] = {"scale.w", "scale.b"};
  CHECK_FAILS(sconce_model_stage_tensors(handles.model, names, tensors, 1, nullptr), SCONCE_INVALID_ARGUMENT,
              "scale.b");
  CHECK_OK(sconce_model_stage_tensors(handles.model, names, tensors, 2, nullptr));
  CHECK_OK(sconce_model_abort(handles.model));
  CHECK(handles.run(3) == stored(3));
  Floats bad(std::vector<float>{1, 1, std::numeric_limits<float>::quiet_NaN(), 1});
  const sconce_tensor* const not_finite[] = {&bad.tensor};
  sconce_update_options options{};
  options.size = sizeof options;
  options.partial = options.check_finite = 1;
  CHECK_FAILS(sconce_model_stage_tensors(handles.model, names, not_finite, 1, &options), SCONCE_INVALID_ARGUMENT,
              "scale.w");
  CHECK(handles.run(3) == stored(3));

  const std::filesystem::path file = handles.folder / "new.safetensors";
  const NamedTensor named[] = {{"scale.w", filled({4}, 5)}, {"scale.b", filled({4}, 0)}};
  write_safetensors(file, named);
  sconce_file_options how{};
  how.size = sizeof how;
  how.sha256 = "00";
  CHECK_FAILS(sconce_model_stage_file(handles.model, file.c_str(), &how, nullptr), SCONCE_INVALID_ARGUMENT, "sha256");
  const std::string zeros(64, '0');
  how.sha256 = zeros.c_str();
  CHECK_FAILS(sconce_model_stage_file(handles.model, file.c_str(), &how, nullptr), SCONCE_INVALID_ARGUMENT, "");
  how.sha256 = nullptr;
  how.progress = [](void*, uint64_t, uint64_t) { return 1; };
  CHECK_FAILS(sconce_model_stage_file(handles.model, file.c_str(), &how, nullptr), SCONCE_CANCELLED, "stopped");
  uint64_t seen = 0;
  how.progress = [](void* context, uint64_t done, uint64_t) {
    *static_cast<uint64_t*>(context) = done;
    return 0;
  };
  how.context = &seen;
  CHECK_OK(sconce_model_stage_file(handles.model, file.c_str(), &how, nullptr));
  CHECK(seen > 0);
  CHECK_OK(sconce_model_commit(handles.model, nullptr));
  CHECK(handles.run(3) == std::vector<float>(4, 15));
}
