// The C API: weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string_view>

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

// scale.w = 2 and scale.b = 1 as the bytes of a file.
std::string weights_file() {
  const TempFolder folder;
  const NamedTensor named[] = {{"scale.w", filled({4}, 2)}, {"scale.b", filled({4}, 1)}};
  write_safetensors(folder / "new.safetensors", named);
  return content_of(folder / "new.safetensors");
}

struct Update {
  sconce_update* handle = nullptr;
  explicit Update(sconce_model* model) { CHECK_OK(sconce_model_begin_update(model, nullptr, &handle)); }
  ~Update() { sconce_update_free(handle); }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;
};

// Puts bytes where the stream says, up to `piece` at a time.
void put(sconce_update* update, std::string_view bytes, size_t piece) {
  while (!bytes.empty()) {
    void* room = nullptr;
    size_t size = 0;
    CHECK_OK(sconce_update_stream_next(update, &room, &size));
    REQUIRE(size > 0);
    size = std::min({size, piece, bytes.size()});
    std::memcpy(room, bytes.data(), size);
    CHECK_OK(sconce_update_stream_advance(update, size));
    bytes.remove_prefix(size);
  }
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
  CHECK(sets[0].weight_version == 1);
  CHECK(sets[0].generation == 1);  // deprecated
  CHECK(sets[1].state == SCONCE_STAGED);
  CHECK(std::string(sets[1].label) == "step-7");
  CHECK(sets[1].since_ns > int64_t{1'600'000'000} * 1'000'000'000);
  const std::string staged = digest(handles.model, SCONCE_STAGED);
  CHECK(staged != before);

  uint64_t weight_version = 0;
  CHECK_OK(sconce_model_commit(handles.model, &weight_version));
  CHECK(weight_version == 2);
  sconce_run_info info{};
  info.size = sizeof info;
  CHECK(handles.run(3, &info) == std::vector<float>(4, 7));
  CHECK(std::string(info.label) == "step-7");
  CHECK(digest(handles.model, SCONCE_ACTIVE) == staged);
  CHECK_OK(sconce_model_rollback(handles.model, &weight_version));
  CHECK(weight_version == 3);
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

TEST_CASE("c api: weights as a stream of bytes, in pieces of any size, put or written") {
  const std::string bytes = weights_file();
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}}) {
    for (const bool write : {false, true}) {
      CAPTURE(piece);
      CAPTURE(write);
      Handles handles;
      {
        const Update update(handles.model);
        sconce_stream_options options{};
        options.size = sizeof options;
        if (write) options.bytes = bytes.size();
        CHECK_OK(sconce_update_begin_stream(update.handle, &options));
        uint64_t done = 1, total = 1;
        CHECK_OK(sconce_update_stream_progress(update.handle, &done, &total));
        CHECK(done == 0);
        CHECK(total == (write ? bytes.size() : 0));
        if (write)
          for (size_t at = 0; at < bytes.size(); at += piece)
            CHECK_OK(sconce_update_stream_write(update.handle, bytes.data() + at, std::min(piece, bytes.size() - at)));
        else
          put(update.handle, bytes, piece);
        CHECK_OK(sconce_update_stream_progress(update.handle, &done, &total));
        CHECK(done == bytes.size());
        CHECK(total == bytes.size());
        CHECK_FAILS(sconce_update_finish(update.handle), SCONCE_FAILED_PRECONDITION, "sconce_update_stream_end");
        CHECK_OK(sconce_update_stream_end(update.handle));
        CHECK_OK(sconce_update_finish(update.handle));
      }
      CHECK(handles.run(3) == stored(3));
      CHECK_OK(sconce_model_commit(handles.model, nullptr));
      CHECK(handles.run(3) == std::vector<float>(4, 7));
    }
  }
}

TEST_CASE("c api: a stream of weights that is cut, too long, damaged or of another digest changes nothing") {
  Handles handles;
  const std::string bytes = weights_file(), longer = bytes + "x", zeros(64, '0');
  std::string damaged = bytes;
  damaged[9] = '?';
  const auto failed = [&](const std::string& content, const char* sha256, sconce_code code, const char* words) {
    const Update update(handles.model);
    sconce_stream_options options{};
    options.size = sizeof options;
    options.source = "the socket";
    options.sha256 = sha256;
    CHECK_OK(sconce_update_begin_stream(update.handle, &options));
    sconce_error* error = sconce_update_stream_write(update.handle, content.data(), content.size());
    if (!error) error = sconce_update_stream_end(update.handle);
    CHECK_FAILS(error, code, words);
    void* room = nullptr;
    size_t size = 0;
    CHECK_FAILS(sconce_update_stream_next(update.handle, &room, &size), SCONCE_FAILED_PRECONDITION, "has failed");
    CHECK_FAILS(sconce_update_stream_end(update.handle), SCONCE_FAILED_PRECONDITION, "has failed");
    CHECK_FAILS(sconce_update_finish(update.handle), SCONCE_FAILED_PRECONDITION, "has failed");
    CHECK(room == nullptr);
  };
  failed(bytes.substr(0, bytes.size() - 1), nullptr, SCONCE_CORRUPT_PACKAGE, "the socket");
  failed(bytes.substr(0, 5), nullptr, SCONCE_CORRUPT_PACKAGE, "within its header");
  failed(longer, nullptr, SCONCE_CORRUPT_PACKAGE, "behind their end");
  failed(damaged, nullptr, SCONCE_CORRUPT_PACKAGE, "the socket");
  failed(bytes, zeros.c_str(), SCONCE_INVALID_ARGUMENT, "the socket");
  CHECK(handles.run(3) == stored(3));
  CHECK(sconce_model_generation(handles.model) == 1);
}

TEST_CASE("c api: steps of a stream out of their order, and wrong arguments") {
  Handles handles;
  const std::string bytes = weights_file();
  void* room = nullptr;
  size_t size = 0;
  {
    const Update update(handles.model);
    CHECK_FAILS(sconce_update_stream_next(update.handle, &room, &size), SCONCE_FAILED_PRECONDITION, "begin_stream");
    CHECK_FAILS(sconce_update_stream_progress(update.handle, nullptr, nullptr), SCONCE_FAILED_PRECONDITION,
                "begin_stream");
    sconce_stream_options options{};
    CHECK_FAILS(sconce_update_begin_stream(update.handle, &options), SCONCE_INVALID_ARGUMENT, "sizeof");
    options.size = sizeof options;
    options.sha256 = "12";
    CHECK_FAILS(sconce_update_begin_stream(update.handle, &options), SCONCE_INVALID_ARGUMENT, "sha256");
    options.sha256 = nullptr;
    options.bytes = 3;
    CHECK_FAILS(sconce_update_begin_stream(update.handle, &options), SCONCE_CORRUPT_PACKAGE, "3 bytes");
    CHECK_OK(sconce_update_begin_stream(update.handle, nullptr));
    CHECK_FAILS(sconce_update_begin_stream(update.handle, nullptr), SCONCE_FAILED_PRECONDITION, "already");
    const int64_t shape[] = {4};
    const sconce_weight entries[] = {{"scale.w", kFloat32, 1, shape}};
    CHECK_FAILS(sconce_update_declare(update.handle, entries, 1), SCONCE_FAILED_PRECONDITION, "stream");
    CHECK_FAILS(sconce_update_memory(update.handle, 0, &room, &size), SCONCE_FAILED_PRECONDITION, "stream");
    CHECK_FAILS(sconce_update_stream_advance(update.handle, 1), SCONCE_INVALID_ARGUMENT, "size");
    CHECK_FAILS(sconce_update_stream_next(update.handle, nullptr, &size), SCONCE_INVALID_ARGUMENT, "bytes");
    CHECK_FAILS(sconce_update_stream_next(update.handle, &room, nullptr), SCONCE_INVALID_ARGUMENT, "size");
    CHECK_OK(sconce_update_stream_next(update.handle, &room, &size));
    CHECK_FAILS(sconce_update_stream_advance(update.handle, size + 1), SCONCE_INVALID_ARGUMENT, "gave room for");
    CHECK_FAILS(sconce_update_stream_write(update.handle, nullptr, 1), SCONCE_INVALID_ARGUMENT, "bytes");
    CHECK_OK(sconce_update_stream_write(update.handle, nullptr, 0));
    CHECK_OK(sconce_update_stream_write(update.handle, bytes.data(), bytes.size()));  // none of those ended it
    CHECK_OK(sconce_update_stream_end(update.handle));
    CHECK_FAILS(sconce_update_stream_end(update.handle), SCONCE_FAILED_PRECONDITION, "has ended");
    CHECK_FAILS(sconce_update_stream_write(update.handle, bytes.data(), 1), SCONCE_FAILED_PRECONDITION, "has ended");
  }
  {
    const Update update(handles.model);
    const int64_t shape[] = {4};
    const sconce_weight entries[] = {{"scale.w", kFloat32, 1, shape}, {"scale.b", kFloat32, 1, shape}};
    CHECK_OK(sconce_update_declare(update.handle, entries, 2));
    CHECK_FAILS(sconce_update_begin_stream(update.handle, nullptr), SCONCE_FAILED_PRECONDITION, "declared");
  }
  CHECK_FAILS(sconce_update_begin_stream(nullptr, nullptr), SCONCE_INVALID_ARGUMENT, "update");
  CHECK_FAILS(sconce_update_stream_end(nullptr), SCONCE_INVALID_ARGUMENT, "update");
  CHECK(handles.run(3) == stored(3));
}
