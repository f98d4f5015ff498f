#include "server/registry/model_loops.h"

#include <algorithm>

namespace sconce::server::registry {

ModelLoops::ModelLoops(ServedModel& served, scheduling::SequenceHost& host,
                       std::shared_ptr<const scheduling::LoopPlan> plan, const ModelConfig& config, TimerQueue& clock)
    : served_(served),
      plan_(std::move(plan)),
      clock_(clock),
      rows_(plan_->rows > 0 ? std::make_unique<scheduling::DecodeBatch>(
                                  served.interface(), *plan_, host, *served.sequences(), served.policy(),
                                  config.sequence_weights == SequenceWeights::kActive, clock)
                            : nullptr) {}

int64_t ModelLoops::places() const noexcept {
  return plan_->sequence ? served_.sequence_places() * std::max<int64_t>(plan_->rows, 1) : 0;
}

void ModelLoops::count_step(const scheduling::QueuedRequest& step, Clock::time_point begun) noexcept {
  if (step.error) served_.failed();
  scheduling::Statistics& statistics = served_.statistics();
  statistics.loops().steps.fetch_add(1, std::memory_order_relaxed);
  if (step.run_rows >= 0)
    statistics.count_locked([&](size_t thread) {
      statistics.execution(thread, step.run_rows, step.gather, step.info.compute, step.split);
    });
  // If a device returned only the largest logits, there is nothing to compare.
  if (!step.error && step.last_rows.output < 0 && served_.watches_answers())
    served_.answers().show({step.inputs, step.outputs, step.info, clock_.now() - begun, step.gather.count() == 0});
}

}  // namespace sconce::server::registry
