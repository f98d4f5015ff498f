// PipelineSpec: the models of a pipeline and the links between them, as the file defines them. It is not yet checked
// against the models; pipeline_plan.h does that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/dtype.h"
#include "server/scheduling/triton/model_config.h"

namespace sconce::server::scheduling {

struct PipelineSpec {
  // An input or output of the whole pipeline. Its optional members are checked against the models.
  struct Tensor {
    std::string name;
    std::optional<DType> dtype;
    std::optional<std::vector<int64_t>> shape;  // as in metadata: with the batch dimension, -1 for a variable size
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
    std::string version;  // digits or a label; empty: the highest version that is ready
    std::vector<Input> inputs;
    std::vector<Output> outputs;
  };
  std::string origin;  // path of the file
  std::vector<Tensor> inputs, outputs;
  std::vector<Step> steps;
};

// A NAME.pipeline.json file (docs/pipelines.md). kInvalidArgument.
PipelineSpec read_pipeline(std::string_view text, std::string origin);
// Triton's ensemble as a pipeline. kInvalidArgument.
PipelineSpec pipeline_of(const TritonConfig& config, std::string origin);

}  // namespace sconce::server::scheduling
