// TritonConfig: the contents of a model's config.pbtxt in this server's terms. Fields without an effect are listed in
// `ignored`, so that users learn about them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sconce::server::scheduling {

struct TritonTensor {
  std::string name;
  std::string datatype;                      // v2's name: "FP32"; empty: not given
  std::optional<std::vector<int64_t>> dims;  // without the batch, if max_batch_size is not 0
};

// An input of a sequence model that the server fills.
struct TritonControl {
  enum class Kind : int8_t { kStart, kEnd, kReady, kId };
  std::string name;
  Kind kind = Kind::kReady;
  std::string datatype;  // v2's name
  double off = 0, on = 1;
};

// A warm-up request, run before the model is served.
struct TritonWarmUp {
  enum class Values : int8_t { kZero, kRandom, kFile };
  struct Input {
    std::string name, datatype;
    std::vector<int64_t> dims;  // without the batch, if batch_size is not 0
    Values values = Values::kZero;
    std::string file;  // path below the model's folder warmup/
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
  // Pairs of the model's tensor name and the ensemble's.
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
};

struct TritonConfig {
  std::string name;  // empty: not given
  int64_t max_batch_size = 0;
  std::vector<TritonTensor> inputs, outputs;
  // Keys and values, reported to clients. Only settings among them have an effect.
  std::vector<std::pair<std::string, std::string>> parameters, metric_tags;
  // Settings of settings.def, as text.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<TritonWarmUp> warm_ups;
  std::vector<TritonControl> controls;
  bool ensemble = false;
  std::vector<TritonStep> steps;
  std::vector<std::string> ignored;  // "optimization (line 12)", with a reason where needed
};

// folder: of the model, for files named in the text. kInvalidArgument names the line.
TritonConfig read_triton_config(std::string_view text, const std::filesystem::path& folder);

}  // namespace sconce::server::scheduling
