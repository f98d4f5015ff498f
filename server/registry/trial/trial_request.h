// TrialRequest: the task of a trial, as the JSON text that a process sends to its child (sconce/trial/trial_process.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::registry {

struct TrialRequest {
  // How the model is loaded.
  std::string model;  // name in the package
  int threads = 0;
  std::vector<std::string> op_libraries;
  bool check_inputs = true;

  bool warm_up = false;  // make the run of Model::warm_up()

  // All other steps use the weights of this file in place of the package's; empty: the package's.
  std::string weights;
  std::vector<std::string> weights_ignore;
  bool outputs = false;  // find out about outputs that the package does not describe
  struct Rows {          // check batch invariance with these settings of the model
    int64_t max_batch_size = 0;
    std::vector<int64_t> preferred;
  };
  std::optional<Rows> rows;
  struct Inputs {  // run on the inputs that `sconce run` and `sconce bench` use without files
    uint64_t seed = 0;
    std::vector<std::string> sizes;
  };
  std::optional<Inputs> inputs;
};

std::string to_text(const TrialRequest& request);
// kInvalidArgument.
TrialRequest trial_request(std::string_view text);

}  // namespace sconce::server::registry
