// PipelinePlan: a pipeline after its file was compared with the models that it joins: which step needs which values,
// and what the whole takes and returns. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/scheduling/pipelines/pipeline_spec.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

struct PipelinePlan {
  struct Input {
    size_t value = 0;
    std::optional<DType> cast;
  };
  struct Step {
    std::vector<Input> inputs;                   // in the order of the model's
    std::vector<std::optional<size_t>> outputs;  // the value that each output of the model is; nullopt: nobody needs it
    std::vector<size_t> next;                    // steps that need some of its values
    size_t needs = 0;                            // how many steps it needs
  };
  // As clients see it: its tensors have the file's names, its dimensions the ranges that all steps accept.
  ModelSignature interface;
  size_t values = 0;            // the inputs are the first ones
  std::vector<size_t> outputs;  // the value of each output
  std::vector<Step> steps;      // in the file's order
};

// members: the model of each step. kInvalidArgument names the step, the tensor and what does not fit: names that a
// model lacks, tensors that nobody makes, that two make or that nobody needs, dtypes, ranks, sizes, steps in a circle.
PipelinePlan plan_pipeline(const PipelineSpec& spec, std::string name, int64_t version,
                           std::span<const ModelSignature* const> members);

}  // namespace sconce::server
