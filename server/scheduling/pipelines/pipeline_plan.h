// PipelinePlan: a pipeline whose file was checked against its models: the values that each step reads and writes, and
// the inputs and outputs of the whole. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/scheduling/pipelines/pipeline_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

struct PipelinePlan {
  struct Input {
    size_t value = 0;
    std::optional<DType> cast;
  };
  struct Step {
    std::vector<Input> inputs;  // in the order of the model's inputs
    std::vector<std::optional<size_t>>
        outputs;               // the value that each output of the model becomes; nullopt: the output is unused
    std::vector<size_t> next;  // steps that read some of its values
    size_t needs = 0;          // number of steps that it depends on
  };
  // As clients see it: its tensors have the file's names, and its dimensions have the ranges that all steps accept.
  ModelSignature interface;
  size_t values = 0;            // number of values; the inputs come first
  std::vector<size_t> outputs;  // the value of each output
  std::vector<Step> steps;      // in the order of the file
};

// members: the model of each step. kInvalidArgument names the step, the tensor and the mismatch: names that a model
// lacks; tensors that no step makes, that two steps make, or that are unused; dtypes, ranks, sizes; a cycle of steps.
PipelinePlan plan_pipeline(const PipelineSpec& spec, std::string name, int64_t version,
                           std::span<const ModelSignature* const> members);

}  // namespace sconce::server::scheduling
