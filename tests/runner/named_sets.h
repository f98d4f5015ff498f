// What tests of named sets share: sets of a fake model that answers y = x * w + b, filled, run and looked at.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/weights.h"
#include "tests/runner/fake_runner.h"

namespace sconce::test {

inline std::vector<float> all(float value) { return std::vector<float>(4, value); }

inline std::vector<Values> constants(float w, float b) { return {{"scale.w", all(w)}, {"scale.b", all(b)}}; }

inline LoadOptions holding(int sets, uint64_t memory = 0, std::filesystem::path folder = {}) {
  LoadOptions options;
  options.sets = sets;
  options.sets_memory = memory;
  options.sets_folder = std::move(folder);
  return options;
}

inline void put(Model& model, const std::string& name, const std::vector<Values>& values, UpdateOptions options = {}) {
  options.set = name;
  stage(model, values, std::move(options));
}

// The first row of the answer of a named set for a batch of two rows full of x.
inline std::vector<float> run_with(Model& model, const WeightSet* set, float x, RunInfo* info = nullptr,
                                   int64_t columns = 4) {
  const std::vector<Tensor> inputs{filled({2, columns}, x)};
  std::vector<Tensor> outputs(1);
  const RunInfo got = model.run(inputs, outputs, 0, set);
  if (info) *info = got;
  const float* y = outputs[0].data_as<float>();
  return {y, y + 4};
}
inline std::vector<float> run_with(Model& model, const std::string& set, float x, RunInfo* info = nullptr) {
  return run_with(model, model.bring_set(set).get(), x, info);
}

inline NamedSetInfo info_of(const Model& model, const std::string& name) {
  for (const NamedSetInfo& info : model.named_sets())
    if (info.name == name) return info;
  FAIL("no set " << name);
  return {};
}

inline std::string name_of(int i) { return std::string("s").append(std::to_string(i)); }

// A submitted run that tells when it is done.
struct SetRun : RunRequest {
  // Submits a run of the set and waits until the model computes. What the views name outlives the run.
  void begin(Loaded& loaded, const WeightSet& set, std::span<const Tensor> in, std::span<Tensor> out) {
    inputs = in;
    outputs = out;
    weights = &set;
    loaded.model->submit(*this);
    while (loaded.knobs->running == 0) std::this_thread::yield();
  }
  std::atomic<bool> done{false};
  void finished() noexcept override {
    done.store(true);
    done.notify_all();
  }
};

}  // namespace sconce::test
