// PipelineModel: a pipeline of served models, as it is served. Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "server/registry/served_model.h"
#include "server/scheduling/pipelines/pipeline_plan.h"
#include "server/scheduling/pipelines/pipeline_spec.h"

namespace sconce::server::registry {

class PipelineModel final : public ServedModel {
 public:
  // members: the model of each step. spec: the source of the plan. statistics: shared with earlier loads.
  PipelineModel(scheduling::PipelinePlan plan, std::vector<std::shared_ptr<ServedModel>> members,
                const scheduling::PipelineSpec& spec, const ModelConfig& config,
                std::shared_ptr<scheduling::Statistics> statistics, TimerQueue& clock);

  std::span<const std::shared_ptr<ServedModel>> members() const noexcept override { return members_; }
  ModelWeights* find_weights() const noexcept override { return nullptr; }

  void submit(scheduling::QueuedRequest& request) override;
  // Its runs need the threads of its models.
  bool run_here(size_t /*input_bytes*/) noexcept override { return false; }
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* weights,
              bool device_outputs) override;
  void check_inputs(std::span<const Tensor> /*inputs*/) const override {}  // each step checks its own
  bool failed() noexcept override;

 private:
  static Basis basis_of(scheduling::PipelinePlan plan, const std::vector<std::shared_ptr<ServedModel>>& members,
                        const scheduling::PipelineSpec& spec, const ModelConfig& config,
                        std::shared_ptr<scheduling::Statistics> statistics, const TimerQueue& clock);

  const std::vector<std::shared_ptr<ServedModel>> members_;
};

}  // namespace sconce::server::registry
