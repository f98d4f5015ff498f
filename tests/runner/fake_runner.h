// Loads a fake model from a temporary folder, runs it and updates its weights.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fake_package.h"
#include "sconce/model.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::test {

using Ints = std::vector<int64_t>;

struct Loaded {
  TempFolder folder;
  std::shared_ptr<Model> model;
  FakeKnobs* knobs;

  explicit Loaded(const std::string& name, int replicas = 1, bool source = true, LoadOptions options = {}) {
    fake::write_directory(folder.path() / "package", {{"model", fake::model(name)}}, source);
    options.replicas = replicas;
    model = Model::load(Package::open(folder.path() / "package"), options);
    knobs = fake::loaded().back();
  }
};

inline Tensor filled(const Ints& sizes, float value) {
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = value;
  return t;
}

// The first row of the answer for a batch of two rows full of x.
inline std::vector<float> run(Model& model, float x, int64_t columns = 4, RunInfo* info = nullptr) {
  const std::vector<Tensor> inputs{filled({2, columns}, x)};
  std::vector<Tensor> outputs(model.info().spec.outputs.size());
  const RunInfo got = model.run(inputs, outputs);
  if (info) *info = got;
  const float* y = outputs[0].data_as<float>();
  return {y, y + columns};
}

// The same row as the weights of the package give it.
inline std::vector<float> stored(float x) {
  std::vector<float> y;
  for (int64_t c = 0; c < 4; ++c) y.push_back(fake::expected(x, c));
  return y;
}

// New values for one constant.
struct Values {
  std::string name;
  std::vector<float> values;
};

inline void fill(WeightUpdate& update, const std::vector<Values>& constants) {
  std::vector<WeightEntry> entries;
  for (const Values& c : constants)
    entries.push_back({c.name, DType::kFloat32, {static_cast<int64_t>(c.values.size())}});
  update.declare(entries);
  for (size_t i = 0; i < constants.size(); ++i) {
    const std::span<std::byte> memory = update.memory(i);
    if (!memory.empty()) std::memcpy(memory.data(), constants[i].values.data(), memory.size());
    update.complete(i);
  }
}

inline void stage(Model& model, const std::vector<Values>& constants, UpdateOptions options) {
  const auto update = model.begin_update(std::move(options));
  fill(*update, constants);
  update->finish();
}

inline void publish(Model& model, const std::vector<Values>& constants, UpdateOptions options) {
  stage(model, constants, std::move(options));
  model.commit_weights();
}

}  // namespace sconce::test
