// What a trial is asked for: the JSON text that a process sends to its child (sconce/trial/trial_process.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

struct TrialRequest {
  // How the model is loaded.
  std::string model;  // in the package
  int threads = 0;
  std::vector<std::string> op_libraries;
  bool check_inputs = true;

  bool warm_up = false;  // the run of Model::warm_up()

  // The rest with the weights of this file in place of the package's; empty: with the package's.
  std::string weights;
  std::vector<std::string> weights_ignore;
  bool outputs = false;  // what the package does not record of its outputs
  struct Rows {          // whether rows influence each other, with these settings of the model
    int64_t max_batch_size = 0;
    std::vector<int64_t> preferred;
  };
  std::optional<Rows> rows;
  struct Inputs {  // a run on the inputs of `sconce run` and `sconce bench` without files
    uint64_t seed = 0;
    std::vector<std::string> sizes;
  };
  std::optional<Inputs> inputs;
};

std::string to_text(const TrialRequest& request);
// kInvalidArgument.
TrialRequest trial_request(std::string_view text);

}  // namespace sconce::server
