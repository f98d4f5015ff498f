// TritonConfig: what a model's config.pbtxt says, in this server's words. Fields without a meaning here are named in
// `ignored`, so that nobody believes in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sconce::server {

struct TritonTensor {
  std::string name;
  std::string datatype;                      // v2's name: "FP32"; empty: not given
  std::optional<std::vector<int64_t>> dims;  // without the batch, if max_batch_size is not 0
};

// An input that the server fills in requests of sequences.
struct TritonControl {
  enum class Kind : int8_t { kStart, kEnd, kReady, kId };
  std::string name;
  Kind kind = Kind::kReady;
  std::string datatype;  // v2's name
  double off = 0, on = 1;
};

// A request that is run before the model is served.
struct TritonWarmUp {
  enum class Values : int8_t { kZero, kRandom, kFile };
  struct Input {
    std::string name, datatype;
    std::vector<int64_t> dims;  // without the batch, if batch_size is not 0
    Values values = Values::kZero;
    std::string file;  // below the model's folder warmup/
  };
  std::string name;
  int64_t batch_size = 0;
  int64_t count = 1;
  std::vector<Input> inputs;
};

// A step of an ensemble.
struct TritonStep {
  std::string model;
  int64_t version = -1;  // -1: the latest
  // A tensor of the model, and the ensemble's name for it.
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
};

struct TritonConfig {
  std::string name;  // empty: not given
  int64_t max_batch_size = 0;
  std::vector<TritonTensor> inputs, outputs;
  // Key and value, for clients: nothing here follows them, but for settings.
  std::vector<std::pair<std::string, std::string>> parameters, metric_tags;
  // Settings of settings.def, as text.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<TritonWarmUp> warm_ups;
  std::vector<TritonControl> controls;
  bool ensemble = false;
  std::vector<TritonStep> steps;
  std::vector<std::string> ignored;  // "optimization (line 12)", with a reason where it needs one
};

// folder: the model's, for files that the text names. kInvalidArgument names the line.
TritonConfig read_triton_config(std::string_view text, const std::filesystem::path& folder);

}  // namespace sconce::server
