#include "server/registry/served_model.h"

#include "sconce/check.h"
#include "server/registry/documents.h"
#include "server/registry/model_weights.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {

ServedModel::ServedModel(Basis basis, TimerQueue& clock)
    : interface_(std::move(basis.interface)),
      statistics_(std::move(basis.statistics)),
      first_config_(std::move(basis.config_json)),
      most_body_bytes_(basis.most_body_bytes),
      replicas_(basis.replicas),
      inline_policy_(basis.inline_below, basis.policy.max_rows > 1),
      batcher_(interface_.name, std::move(basis.policy), std::move(basis.submit), clock, inline_policy_,
               basis.replicas) {}

ModelWeights& ServedModel::weights() const {
  ModelWeights* const own = find_weights();
  SCONCE_CHECK(own, kUnsupported, "'", interface_.name,
               "' is a pipeline: it has no weights and no replicas of its own, its models have");
  return *own;
}

Model& ServedModel::model() const { return weights().model(); }

scheduling::ModelStatistics ServedModel::statistics_now() const {
  scheduling::ModelStatistics now{interface_.name, interface_.version, statistics_->totals(), 0, {}};
  if (const ModelWeights* const own = find_weights()) {
    now.constant_bytes = own->model().info().constant_bytes;
    if (const scheduling::ModelSets* const sets = own->sets()) now.sets = sets->counts();
  }
  return now;
}

void ServedModel::end_sharing(const scheduling::InvarianceFinding& found, const ModelConfig& config) {
  batcher_.end_sharing();
  scheduling::ModelSignature seen = interface_;
  seen.row_finding = found;
  const scheduling::BatchPolicy policy = scheduling::batch_policy(seen, config);
  config_alone_ = config_document(seen, policy, config, nullptr);
  config_json_.store(&config_alone_, std::memory_order_release);
  log_warn(
      "model {} version {}: requests run one by one from now on: {}, although it is {} that rows do not influence each "
      "other",
      interface_.name, interface_.version, printable(found.reason), scheduling::text_of(policy.rows.by));
}

void ServedModel::reserve_replicas(int64_t count) {
  batcher_.reserve(count);
  if (scheduling::Sequences* const own = sequences()) own->reserve(count);
}

void ServedModel::set_replicas(int64_t count) noexcept {
  replicas_.store(count, std::memory_order_relaxed);
  batcher_.set_replicas(count);
}

void ServedModel::tell_runs(scheduling::IdleWatch& watch) noexcept {
  batcher_.tell_runs(watch);
  if (scheduling::Sequences* const own = sequences()) own->tell_runs(watch);
}

int64_t ServedModel::pending() const noexcept {
  const scheduling::Sequences* const own = sequences();
  return batcher_.waiting() + (own ? own->waiting() : 0);
}

bool ServedModel::cancel(scheduling::QueuedRequest& request) noexcept {
  if (request.step.sequence ? sequences()->cancel(request) : batcher_.cancel(request)) return true;
  request.give_up();
  return false;
}

void ServedModel::ran_here(std::chrono::nanoseconds compute, size_t bytes) noexcept {
  if (compute.count() > 0) inline_policy_.ran(compute, 1, false, bytes);
  batcher_.release_permit();
  failed();
}

void ServedModel::count_step(const scheduling::QueuedRequest& step,
                             std::chrono::steady_clock::time_point begun) noexcept {
  const std::chrono::nanoseconds total = std::chrono::steady_clock::now() - begun;
  if (step.error) failed();
  statistics_->count_locked([&](size_t thread) {
    if (step.run_rows >= 0) statistics_->execution(thread, step.run_rows, step.gather, step.info.compute, step.split);
    if (!step.error)
      return statistics_->success(thread, {total, step.info.queue, step.gather, step.info.compute, step.split},
                                  step.rows);
    statistics_->failure(thread, scheduling::failure_reason(describe_failure(step.error).code), total);
  });
  if (!step.error && answers_.watched())
    answers_.show({step.inputs, step.outputs, step.info, total, step.gather.count() == 0});
}

}  // namespace sconce::server::registry
