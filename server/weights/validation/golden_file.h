// GoldenFile: recorded requests with the answers that a set of weights must give before it may serve. The file (.npz or
// .safetensors) has tensors named REQUEST/inputs/NAME and REQUEST/outputs/NAME.
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

namespace sconce::server {

struct GoldenRequest {
  struct Output {
    size_t index;  // among the model's
    Tensor expected;
  };
  std::string name;
  std::vector<Tensor> inputs;   // in the model's order, row-major
  std::vector<Output> outputs;  // one or more
};

struct GoldenFile {
  std::filesystem::path path;
  GoldenTolerance tolerance;
  double pass = 1;                      // the share of requests that must pass: above 0, at most 1
  std::vector<GoldenRequest> requests;  // one or more, in the order in which their first tensors lie in the file
};

// The requests of a file in this form, which need no answers. Errors of WeightFile; kInvalidArgument as below.
std::vector<GoldenRequest> read_requests(const std::filesystem::path& path, const ModelSignature& interface,
                                         const Model& model);

// Reads the file into memory and checks it against the model. What the settings golden_* leave open, the metadata of a
// .safetensors file says (rtol, atol, pass, argmax). Errors of WeightFile; kInvalidArgument names the tensor, request
// or tolerance that is wrong.
GoldenFile read_golden(const ModelConfig& config, const ModelSignature& interface, const Model& model);

}  // namespace sconce::server
