// Weights of every kind of file, staged into a model that runs.
#include <doctest/doctest.h>

#include <fstream>

#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "tests/runner/fake_runner.h"

namespace sconce::test {
namespace {

namespace fs = std::filesystem;

void stage(Model& model, const fs::path& path, bool full = true, FileOptions options = {}) {
  UpdateOptions update_options;
  update_options.full = full;
  const auto update = model.begin_update(update_options);
  options.constants = model.constants();
  stage_file(*update, path, options);
  update->finish();
}

std::vector<float> staged(Model& model, const fs::path& path, float x, bool full = true) {
  stage(model, path, full);
  model.commit_weights();
  return run(model, x);
}

// The model's weights as its own blob: w all `w`, b all `b`, what else there is 0.
std::string blob_of(const Model& model, float w, float b) {
  std::string blob;
  for (const ConstantSpec& c : model.constants()) {
    if (c.folded) continue;
    std::vector<float> values(c.data_size / sizeof(float), c.fqn == "scale.w" ? w : c.fqn == "scale.b" ? b : 0);
    blob.append(reinterpret_cast<const char*>(values.data()), c.data_size);
  }
  return blob;
}

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace

TEST_CASE("weights of files: each kind, full and partial, is what the model then computes with") {
  const TempFolder folder;
  Loaded loaded("fake_model", 2);
  Model& model = *loaded.model;
  const std::vector<NamedTensor> both{{"scale.w", filled({4}, 2)}, {"scale.b", filled({4}, 5)}};
  write_safetensors(folder.path() / "w.safetensors", both);
  CHECK(staged(model, folder.path() / "w.safetensors", 3) == std::vector<float>(4, 11));
  write_npz(folder.path() / "w.npz", std::vector<NamedTensor>{{"scale.b", filled({4}, 6)}});
  CHECK(staged(model, folder.path() / "w.npz", 3, false) == std::vector<float>(4, 12));
  write_npy(folder.path() / "scale.w.npy", filled({4}, 1));
  CHECK(staged(model, folder.path() / "scale.w.npy", 3, false) == std::vector<float>(4, 9));
  write(folder.path() / "weights.blob", blob_of(model, 10, 1));
  CHECK(staged(model, folder.path() / "weights.blob", 3) == std::vector<float>(4, 31));
  for (const char* name : {"fake_model", "fake_appended", "fake_external"}) {
    CAPTURE(name);
    fake::write_package(folder.path() / "other.pt2", {{"model", fake::model(name)}});
    CHECK(staged(model, folder.path() / "other.pt2", 3) == stored(3));
    CHECK(staged(model, folder.path() / "weights.blob", 3) == std::vector<float>(4, 31));
  }
  fake::write_directory(folder.path() / "directory", {{"model", fake::model("fake_model")}});
  CHECK(staged(model, folder.path() / "directory", 3) == stored(3));
  CHECK(model.weight_version() == 12);
}

TEST_CASE("weights of files: what was folded follows; what the model writes stays") {
  const TempFolder folder;
  Loaded folded("fake_folded");
  write(folder.path() / "folded.blob", blob_of(*folded.model, 7, 0));
  CHECK(staged(*folded.model, folder.path() / "folded.blob", 3) == std::vector<float>(4, 42));  // 2 w

  Loaded loaded("fake_state");
  run(*loaded.model, 1);
  run(*loaded.model, 1);
  const auto steps = [&] {
    return loaded.model->extract_constants(WeightState::kActive).at("steps").data_as<float>()[0];
  };
  CHECK(steps() == 2);
  write(folder.path() / "state.blob", blob_of(*loaded.model, 7, 0));
  stage(*loaded.model, folder.path() / "state.blob");
  loaded.model->commit_weights();
  CHECK(steps() == 2);
}

TEST_CASE("weights of files: what does not fit, ends early or is cancelled leaves the old ones serving") {
  const TempFolder folder;
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  const fs::path path = folder.path() / "w.safetensors";
  const auto refused = [&](const char* text, bool full = true, FileOptions options = {}) {
    CHECK_THROWS_WITH_AS(stage(model, path, full, options), doctest::Contains(text), Error);
    CHECK(model.weight_version() == 1);
    CHECK(model.weight_sets().size() == 1);
    CHECK(run(model, 3) == stored(3));
  };
  const auto write = [&](std::vector<NamedTensor> tensors) { write_safetensors(path, tensors); };
  write({{"scale.w", filled({4}, 2)}});
  refused("scale.b");
  write({{"nope", filled({4}, 2)}});
  refused("nope", false);
  write({{"scale.w", filled({2, 2}, 2)}});
  refused("scale.w", false);
  write({{"scale.w", Tensor::empty(Ints{4}, DType::kFloat64)}});
  refused("scale.w", false);
  write({{"scale.w", filled({4}, 2)}});
  refused("SHA-256 differs", false, {.sha256 = Sha256Digest{}});
  const std::atomic<bool> cancel{true};
  refused("cancelled", false, {.cancel = &cancel});
  fs::resize_file(path, fs::file_size(path) - 1);
  refused("outside the file", false);
  write({{"scale.w", filled({4}, 2)}, {"scale.b", filled({4}, 0)}});
  CHECK(staged(model, path, 3) == std::vector<float>(4, 6));
}

TEST_CASE("weights of a stream: into a model; one that breaks off leaves nothing behind") {
  const TempFolder folder;
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  write_safetensors(folder.path() / "w.safetensors",
                    std::vector<NamedTensor>{{"scale.w", filled({4}, 2)}, {"scale.b", filled({4}, 5)}});
  for (const bool whole : {false, true}) {
    SafetensorsEncoder encoder(WeightFile::open(folder.path() / "w.safetensors"));
    const auto update = model.begin_update({});
    WeightStream stream(*update, {.bytes = encoder.bytes()});
    std::vector<std::byte> block(16);
    while (const size_t n = encoder.read(block)) {
      if (!whole && stream.bytes_done() + n == encoder.bytes()) break;
      for (size_t at = 0; at < n;) {
        const std::span<std::byte> room = stream.next();
        const size_t piece = std::min(room.size(), n - at);
        std::memcpy(room.data(), &block[at], piece);
        stream.advance(piece);
        at += piece;
      }
    }
    if (!whole) {
      CHECK_THROWS_AS(stream.end(), Error);
      CHECK_THROWS_AS(update->finish(), Error);
      continue;
    }
    stream.end();
    update->finish();
    CHECK(run(model, 3) == stored(3));
    model.commit_weights();
    CHECK(run(model, 3) == std::vector<float>(4, 11));
  }
}

TEST_CASE("weights of a set: what is read from one model is what another one computes with") {
  Loaded from("fake_model"), to("fake_model");
  const auto update = from.model->begin_update({.label = "five"});
  const std::vector<WeightEntry> entries{{"scale.w", DType::kFloat32, {4}}, {"scale.b", DType::kFloat32, {4}}};
  update->declare(entries);
  for (size_t i = 0; i < 2; ++i) {
    const auto values = update->memory(i);
    std::fill_n(reinterpret_cast<float*>(values.data()), 4, 5.0F);
    update->complete(i);
  }
  update->finish();
  CHECK_THROWS_WITH_AS(from.model->open_weights(WeightState::kPrevious), "there is no previous constant set", Error);
  CHECK(from.model->open_weights(WeightState::kStaged)->info().label == "five");
  from.model->commit_weights();
  std::unique_ptr<WeightSetFile> set = from.model->open_weights(WeightState::kActive);
  CHECK(set->info().weight_version == 2);
  const std::string digest = set->digest();
  CHECK(digest == from.model->weights_digest(WeightState::kActive));
  from.model->rollback_weights();
  from.model->release_previous();  // the set stays as long as somebody reads it

  const TempFolder folder;
  SafetensorsEncoder encoder(std::move(set));
  std::string bytes;
  std::vector<std::byte> scratch(64);
  for (;;) {
    const auto piece = encoder.next(scratch);
    if (piece.empty()) break;
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  CHECK(bytes.size() == encoder.bytes());
  write(folder.path() / "w.safetensors", bytes);
  CHECK(staged(*to.model, folder.path() / "w.safetensors", 3) == std::vector<float>(4, 20));
  CHECK(to.model->weights_digest(WeightState::kActive) == digest);
}

}  // namespace sconce::test
