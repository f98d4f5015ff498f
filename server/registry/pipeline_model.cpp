#include "server/registry/pipeline_model.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/registry/documents.h"
#include "server/scheduling/pipeline.h"
#include "server/scheduling/signature/body_bound.h"

namespace sconce::server::registry {
namespace {

std::vector<std::shared_ptr<scheduling::Schedulable>> schedulable(
    const std::vector<std::shared_ptr<ServedModel>>& members) {
  return {members.begin(), members.end()};
}

}  // namespace

ServedModel::Basis PipelineModel::basis_of(scheduling::PipelinePlan plan,
                                           const std::vector<std::shared_ptr<ServedModel>>& members,
                                           const scheduling::PipelineSpec& spec, const ModelConfig& config,
                                           std::shared_ptr<scheduling::Statistics> statistics,
                                           const TimerQueue& clock) {
  Basis basis{.interface = plan.interface};
  basis.policy = scheduling::batch_policy(basis.interface, config);
  basis.config_json = config_document(basis.interface, basis.policy, config, &spec);
  basis.most_body_bytes = config.check_inputs ? scheduling::most_body_bytes(basis.interface) : UINT64_MAX;
  basis.replicas = std::max<int64_t>(config.pipeline_requests, 1);
  basis.submit = [pipeline = std::make_shared<scheduling::Pipeline>(
                      std::move(plan), schedulable(members), config.timeout_action == TimeoutAction::kReject, clock)](
                     scheduling::BatchRun& run) { pipeline->submit(run); };
  basis.statistics = std::move(statistics);
  return basis;
}

PipelineModel::PipelineModel(scheduling::PipelinePlan plan, std::vector<std::shared_ptr<ServedModel>> members,
                             const scheduling::PipelineSpec& spec, const ModelConfig& config,
                             std::shared_ptr<scheduling::Statistics> statistics, TimerQueue& clock)
    : ServedModel(basis_of(std::move(plan), members, spec, config, std::move(statistics), clock), clock),
      members_(std::move(members)) {}

void PipelineModel::submit(scheduling::QueuedRequest& request) {
  const scheduling::Pipeline::Here here;
  enqueue(request);
}

RunInfo PipelineModel::run(std::span<const Tensor> /*inputs*/, std::span<Tensor> /*outputs*/,
                           const WeightSet* /*weights*/, bool /*device_outputs*/) {
  SCONCE_FAIL(kInternal, "'", interface().name, "' is a pipeline, which no single thread can run");
}

bool PipelineModel::failed() noexcept {
  bool any = false;
  for (const std::shared_ptr<ServedModel>& member : members_) any = member->failed() || any;
  return any;
}

}  // namespace sconce::server::registry
