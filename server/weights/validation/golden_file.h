// GoldenFile: recorded requests with the answers that a weight set must reproduce before it may serve. The file (.npz
// or .safetensors) has tensors named REQUEST/inputs/NAME and REQUEST/outputs/NAME.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/tensor.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"
#include "server/weights/validation/golden_comparison.h"

namespace sconce::server::weights {

struct GoldenRequest {
  struct Output {
    size_t index;  // index of the model's output
    Tensor expected;
  };
  std::string name;
  std::vector<Tensor> inputs;   // in the model's order, row-major
  std::vector<Output> outputs;  // one or more
};

struct GoldenFile {
  std::filesystem::path path;
  GoldenTolerance tolerance;
  double pass = 1;                      // share of requests that must pass: above 0, at most 1
  std::vector<GoldenRequest> requests;  // one or more, in the order of their first tensors in the file
};

// The requests of a file in this format; answers are optional. Errors of WeightFile; kInvalidArgument as below.
std::vector<GoldenRequest> read_requests(const std::filesystem::path& path, const scheduling::ModelSignature& interface,
                                         const Model& model);

// Reads the file into memory and checks it against the model. Values that the settings golden_* leave open come from
// the metadata of a .safetensors file (rtol, atol, pass, argmax). Errors of WeightFile; kInvalidArgument names the
// wrong tensor, request or tolerance.
GoldenFile read_golden(const ModelConfig& config, const scheduling::ModelSignature& interface, const Model& model);

}  // namespace sconce::server::weights
