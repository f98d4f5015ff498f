#include "server/registry/served_model.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/registry/documents.h"
#include "server/scheduling/signature/body_bound.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/memory/request_memory.h"
#include "server/support/process/end_signals.h"
#include "src/support/excerpt.h"

namespace sconce::server {
namespace {

std::atomic<bool> restart{false};

std::chrono::nanoseconds inline_limit(const ModelSignature& interface, const ModelConfig& config,
                                      std::chrono::nanoseconds limit) {
  // A model that writes its buffers stays on its replica thread, because its outputs must be read before the next run.
  // A model with several threads stays there because the replica thread owns them.
  const bool possible = !interface.mutates_constants && interface.spec.threads <= 1 && config.threads <= 1;
  return possible ? limit : std::chrono::nanoseconds(0);
}

// The size limit of a body: the maximum for its inputs, and for the prompt of a decode loop. Without size checks, no
// input is known to be too large.
uint64_t body_limit(const ModelSignature& interface, const ModelConfig& config, const LoopPlan* loop) {
  if (!config.check_inputs) return UINT64_MAX;
  const uint64_t inputs = most_body_bytes(interface);
  constexpr uint64_t kToken = 48;  // as text: the longest number, a separator and a line end
  const auto tokens = static_cast<uint64_t>(loop ? loop->most_prompt() : 0);
  return inputs > UINT64_MAX - tokens * kToken ? inputs : inputs + tokens * kToken;
}

Batcher::Submit performer(Model* model, Pipeline* pipeline) {
  if (pipeline) return [pipeline](BatchRun& run) { pipeline->submit(run); };
  return [model](BatchRun& run) { model->submit(run); };
}

}  // namespace

ServedModel::ServedModel(ModelSignature interface, std::shared_ptr<Model> model, const ModelConfig& config,
                         TimerQueue& clock, std::shared_ptr<Statistics> statistics,
                         std::chrono::nanoseconds inline_below, std::shared_ptr<StoredWeights> kept,
                         std::shared_ptr<Golden> golden, std::shared_ptr<const LoopPlan> loop)
    : ServedModel({std::move(interface), std::move(model), nullptr, inline_below, std::move(kept), std::move(golden),
                   std::move(loop)},
                  nullptr, config, clock, std::move(statistics)) {}

ServedModel::ServedModel(std::unique_ptr<Pipeline> pipeline, const PipelineSpec& spec, const ModelConfig& config,
                         TimerQueue& clock, std::shared_ptr<Statistics> statistics)
    : ServedModel({pipeline->plan().interface, nullptr, std::move(pipeline), {}, nullptr, nullptr, nullptr}, &spec,
                  config, clock, std::move(statistics)) {}

ServedModel::ServedModel(Parts parts, const PipelineSpec* spec, const ModelConfig& config, TimerQueue& clock,
                         std::shared_ptr<Statistics> statistics)
    : interface_(std::move(parts.interface)),
      model_(std::move(parts.model)),
      pipeline_(std::move(parts.pipeline)),
      statistics_(std::move(statistics)),
      most_sets_(model_ ? config.sets : 0),
      sequence_places_(has_sequences(interface_, config) ? config.sequences : 0),
      sets_on_disk_(!config.sets_folder.empty()),
      first_generation_(model_ ? model_->generation() : 0),
      sets_(most_sets_ > 0 ? std::make_unique<ModelSets>(*model_, config.routes) : nullptr),
      replicas_(model_ ? model_->info().replicas : std::max<int64_t>(config.pipeline_requests, 1)),
      inline_policy_(inline_limit(interface_, config, parts.inline_below),
                     batch_policy(interface_, config).max_rows > 1),
      batcher_(interface_.name, batch_policy(interface_, config), performer(model_.get(), pipeline_.get()), clock,
               inline_policy_, replicas_),
      sequences_(has_sequences(interface_, config)
                     ? std::make_unique<Sequences>(interface_.name, *model_, batcher_.policy(), config.sequence_idle,
                                                   clock, inline_policy_, replicas_)
                     : nullptr),
      first_config_(config_document(interface_, batcher_.policy(), config, spec)),
      most_body_bytes_(body_limit(interface_, config, parts.loop.get())),
      guard_{config.guard, config.guard_errors, config.guard_nan, config.guard_p99},
      device_fault_(config.device_fault),
      require_label_(config.require_label),
      kept_(std::move(parts.kept)),
      golden_(std::move(parts.golden)),
      loop_(std::move(parts.loop)),
      loop_rows_(loop_ && loop_->rows > 0
                     ? std::make_unique<DecodeBatch>(interface_, *loop_, *model_, *sequences_, batcher_.policy(),
                                                     config.sequence_weights == SequenceWeights::kActive, clock)
                     : nullptr),
      shadow_(model_ ? std::make_unique<Shadow>(
                           *model_, interface_, answers_, [this] { return batcher_.waiting(); }, config.shadow,
                           static_cast<uint64_t>(config.shadow_memory))
                     : nullptr) {}

void ServedModel::fail_without_model() const {
  SCONCE_FAIL(kUnsupported, "'", interface_.name,
              "' is a pipeline: it has no weights and no replicas of its own, its models have");
}

std::shared_ptr<Recording> ServedModel::recording() const {
  const MutexLock lock(recording_mutex_);
  return recording_;
}

void ServedModel::record(std::shared_ptr<Recording> recording, const std::shared_ptr<Recording>& before) {
  const MutexLock lock(recording_mutex_);
  SCONCE_CHECK(recording_ == before, kBusy, "another recording of the model was begun");
  recording_ = std::move(recording);
}

ModelStatistics ServedModel::statistics_now() const {
  return {interface_.name, interface_.version, statistics_->totals(), model_ ? model_->info().constant_bytes : 0,
          sets_ ? sets_->counts() : std::vector<ModelSets::Count>()};
}

std::string ServedModel::why_held() const {
  if (!model_) return {};
  const WeightSetInfo active = model_->weight_sets().front();
  if (!active.missing.empty())
    return "the package brings no weights and constant '" + excerpt(active.missing) + "' has not been given";
  if (require_label_.empty() || active.label == require_label_) return {};
  return "the label of its weights is '" + excerpt(active.label) + "', require_label is '" + excerpt(require_label_) +
         "'";
}

void ServedModel::end_sharing(const InvarianceFinding& found, const ModelConfig& config) {
  batcher_.end_sharing();
  ModelSignature seen = interface_;
  seen.row_finding = found;
  const BatchPolicy policy = batch_policy(seen, config);
  config_alone_ = config_document(seen, policy, config, nullptr);
  config_json_.store(&config_alone_, std::memory_order_release);
  log_warn(
      "model {} version {}: requests run one by one from now on: {}, although it is {} that rows do not influence each "
      "other",
      interface_.name, interface_.version, printable(found.reason), text_of(policy.rows.by));
}

bool ServedModel::run_here(size_t bytes) noexcept {
  // A model that runs on other threads would block this one. Waiting requests have precedence.
  return model_ && model_->runs_on_caller() && batcher_.waiting() == 0 && inline_policy_.run_inline(bytes) &&
         batcher_.acquire_permit();
}

void ServedModel::ran_here(std::chrono::nanoseconds compute, size_t bytes) noexcept {
  if (compute.count() > 0) inline_policy_.ran(compute, 1, false, bytes);
  batcher_.release_permit();
  failed();
}

void ServedModel::submit(QueuedRequest& request) {
  if (!pipeline_) return batcher_.submit(request);
  const Pipeline::Here here;
  batcher_.submit(request);
}

bool ServedModel::cancel(QueuedRequest& request) noexcept {
  if (request.step.sequence ? sequences_->cancel(request) : batcher_.cancel(request)) return true;
  request.give_up();
  return false;
}

void ServedModel::count_step(const QueuedRequest& step, std::chrono::steady_clock::time_point begun) noexcept {
  const std::chrono::nanoseconds total = std::chrono::steady_clock::now() - begun;
  if (step.error) failed();
  statistics_->in_turn([&](size_t thread) {
    if (step.run_rows >= 0) statistics_->execution(thread, step.run_rows, step.gather, step.info.compute, step.split);
    if (!step.error)
      return statistics_->success(thread, {total, step.info.queue, step.gather, step.info.compute, step.split},
                                  step.rows);
    statistics_->failure(thread, failure_reason(describe_failure(step.error).code), total);
  });
  if (!step.error && answers_.watched())
    answers_.show({step.inputs, step.outputs, step.info, total, step.gather.count() == 0});
}

void ServedModel::count_loop_step(const QueuedRequest& step, std::chrono::steady_clock::time_point begun) noexcept {
  if (step.error) failed();
  statistics_->loops().steps.fetch_add(1, std::memory_order_relaxed);
  if (step.run_rows >= 0)
    statistics_->in_turn([&](size_t thread) {
      statistics_->execution(thread, step.run_rows, step.gather, step.info.compute, step.split);
    });
  // If a device returned only the largest logits, there is nothing to compare.
  if (!step.error && step.last_rows.output < 0 && answers_.watched())
    answers_.show(
        {step.inputs, step.outputs, step.info, std::chrono::steady_clock::now() - begun, step.gather.count() == 0});
}

bool ServedModel::failed() noexcept {
  if (pipeline_) {
    bool any = false;
    for (const std::shared_ptr<ServedModel>& member : pipeline_->members()) any = member->failed() || any;
    return any;
  }
  if (model_->code_failed()) [[unlikely]] {
    if (!failure_said_.exchange(true))
      log_error(
          "model {} version {} has failed: its code has faulted as often as max_code_faults allows, or lost as much "
          "memory "
          "as it may; load it again",
          interface_.name, interface_.version);
    return true;
  }
  if (!model_->failed()) [[likely]]
    return false;
  if (failure_said_.exchange(true)) return true;
  log_error("model {} version {} cannot run any more: its devices are lost to this process{}", interface_.name,
            interface_.version,
            device_fault_ == DeviceFault::kStay  ? "; it is not ready from now on"
            : device_fault_ == DeviceFault::kEnd ? ", which ends"
                                                 : ", which starts again");
  if (device_fault_ == DeviceFault::kStay) return true;
  if (device_fault_ == DeviceFault::kRestart) restart = true;
  end_process_in_order();
  return true;
}

bool restart_wanted() noexcept { return restart; }

}  // namespace sconce::server
