// PipelineSpec: which models a pipeline joins and how, as its file says. Nothing of it is compared with models yet;
// that is for pipeline_plan.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/dtype.h"
#include "server/scheduling/triton/model_config.h"

namespace sconce::server {

struct PipelineSpec {
  // An input or output of the whole. What it says of itself is compared with the models.
  struct Tensor {
    std::string name;
    std::optional<DType> dtype;
    std::optional<std::vector<int64_t>> shape;  // as in metadata: with the batch, -1 for a variable size
  };
  struct Input {
    std::string name;    // of the model
    std::string tensor;  // of the pipeline
    std::optional<DType> cast;
  };
  struct Output {
    std::string name;    // of the model
    std::string tensor;  // of the pipeline
  };
  struct Step {
    std::string model;
    std::string version;  // digits or a label; empty: the highest that is ready
    std::vector<Input> inputs;
    std::vector<Output> outputs;
  };
  std::string origin;  // the file
  std::vector<Tensor> inputs, outputs;
  std::vector<Step> steps;
};

// A NAME.pipeline.json file (docs/pipelines.md). kInvalidArgument.
PipelineSpec read_pipeline(std::string_view text, std::string origin);
// Triton's ensemble. kInvalidArgument.
PipelineSpec pipeline_of(const TritonConfig& config, std::string origin);

}  // namespace sconce::server
