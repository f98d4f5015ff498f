// ServedModel: a loaded version of a model, or a pipeline of such models, with the server's data about it. Thread-safe.
// The DeferredDeleter destroys it when it is no longer served and its last request has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/registry/lazy_load/model_uses.h"
#include "server/registry/pipeline.h"
#include "server/scheduling/batching/batcher.h"
#include "server/scheduling/decoding/decode_batch.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/model_sets.h"
#include "server/scheduling/sequences.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/statistics.h"
#include "server/support/config.h"
#include "server/support/process/deferred_deleter.h"
#include "server/support/timer_queue.h"
#include "server/weights/store/weight_store.h"
#include "server/weights/validation/answer_tap.h"
#include "server/weights/validation/golden.h"
#include "server/weights/validation/guard_counts.h"
#include "server/weights/validation/shadow.h"

namespace sconce::server {

class Recording;

class ServedModel final : public DeletedLater {
 public:
  // statistics: shared with earlier loads. inline_below: see settings.def. kept: null without a store. golden: null
  // without golden requests. loop: null without a decode loop.
  ServedModel(ModelSignature interface, std::shared_ptr<Model> model, const ModelConfig& config, TimerQueue& clock,
              std::shared_ptr<Statistics> statistics, std::chrono::nanoseconds inline_below,
              std::shared_ptr<StoredWeights> kept, std::shared_ptr<Golden> golden,
              std::shared_ptr<const LoopPlan> loop);
  // spec: the source of the pipeline's plan.
  ServedModel(std::unique_ptr<Pipeline> pipeline, const PipelineSpec& spec, const ModelConfig& config,
              TimerQueue& clock, std::shared_ptr<Statistics> statistics);

  const ModelSignature& interface() const noexcept { return interface_; }
  // kUnsupported for a pipeline, which has no weights and no replicas of its own.
  Model& model() const {
    if (!model_) [[unlikely]]
      fail_without_model();
    return *model_;
  }
  // Null for a model of a package.
  const Pipeline* pipeline() const noexcept { return pipeline_.get(); }
  // The initial policy; see end_sharing().
  const BatchPolicy& policy() const noexcept { return batcher_.policy(); }
  const std::string& config_json() const noexcept { return *config_json_.load(std::memory_order_acquire); }
  // A trial found that rows influence each other, although it was proved that they do not: from now on each request
  // runs alone, and the log and config_json() report it. Call this once. config: the model's settings.
  void end_sharing(const InvarianceFinding& found, const ModelConfig& config);
  Statistics& statistics() const noexcept { return *statistics_; }
  ModelStatistics statistics_now() const;
  // Call this before replicas are added, with the new number.
  void reserve_replicas(int64_t count) {
    batcher_.reserve(count);
    if (sequences_) sequences_->reserve(count);
  }
  // Store of its published sets; null: none.
  const std::shared_ptr<StoredWeights>& kept() const noexcept { return kept_; }
  // Why its active set must not be served: a constant has no value, or the label is not require_label. Empty: it may be
  // served.
  std::string why_held() const;
  // Notifies the watch of every run that ends. Call this before the first request. The watch outlives the model.
  void tell_runs(IdleWatch& watch) noexcept {
    batcher_.tell_runs(watch);
    if (sequences_) sequences_->tell_runs(watch);
  }
  // Call this after replicas were added or removed, with the new number.
  void set_replicas(int64_t count) noexcept {
    replicas_.store(count, std::memory_order_relaxed);
    batcher_.set_replicas(count);
  }
  int64_t replicas() const noexcept { return replicas_.load(std::memory_order_relaxed); }
  // Null: requests are not steps of sequences. Otherwise all requests from clients are.
  Sequences* sequences() const noexcept { return sequences_.get(); }
  // The decode loop for requests to generate; null: such a request runs the model once.
  const LoopPlan* loop() const noexcept { return loop_.get(); }
  // The rows of its decode loops; null: each loop has its own sequence, or no state here.
  DecodeBatch* loop_rows() const noexcept { return loop_rows_.get(); }
  // Stops decode loops before their next step, with this error; the text is static.
  void end_loops(const char* why) noexcept { loops_end_.store(why, std::memory_order_relaxed); }
  // Null: loops continue.
  const char* loops_end() const noexcept { return loops_end_.load(std::memory_order_relaxed); }
  // Null: the model has no named sets.
  ModelSets* sets() const noexcept { return sets_.get(); }
  int64_t most_sets() const noexcept { return most_sets_; }
  // The guard of newly published weights, unless a request overrides it.
  const GuardBounds& guard() const noexcept { return guard_; }
  // Passes answers to validators of weights: the shadow, recordings and guards.
  AnswerTap& answers() noexcept { return answers_; }
  // The last recording of its answers; null: none.
  std::shared_ptr<Recording> recording() const;
  // kBusy unless the last recording is `before`.
  void record(std::shared_ptr<Recording> recording, const std::shared_ptr<Recording>& before);
  // The golden requests that new weights must pass; null: none.
  const std::shared_ptr<Golden>& golden() const noexcept { return golden_; }
  // Runs live requests also on the staged set.
  Shadow& shadow() const {
    model();
    return *shadow_;
  }
  // The size limit of a request's body.
  uint64_t most_body_bytes() const noexcept { return most_body_bytes_; }
  // Maximum number of live sequences; 0: no sequences.
  int64_t sequence_places() const noexcept { return sequence_places_; }
  // Maximum number of running decode loops; 0: unlimited, or no loop.
  int64_t loop_places() const noexcept {
    return loop_ && loop_->sequence ? sequence_places_ * std::max<int64_t>(loop_->rows, 1) : 0;
  }
  // Requests that wait for a run.
  int64_t pending() const noexcept { return batcher_.waiting() + (sequences_ ? sequences_->waiting() : 0); }

  // True: the caller runs the model on its own thread, then calls ran_here(). False: the request must be queued.
  bool run_here(size_t input_bytes) noexcept;
  // compute: zero if the model did not run.
  void ran_here(std::chrono::nanoseconds compute, size_t input_bytes) noexcept;
  // Throws the error of a run with these inputs, if it can be determined without running.
  void check_inputs(std::span<const Tensor> inputs) const {
    if (model_) model_->check_inputs(inputs);
  }
  // Queues a request on an I/O thread, for one of its connections. A pipeline may run short steps before this returns.
  void submit(QueuedRequest& request);
  // Queues a request on a thread that must not run models.
  void enqueue(QueuedRequest& request) { batcher_.submit(request); }
  // True: the request was still waiting, and finished() will not be called. False: the request is abandoned, so a
  // pipeline starts no further step for it.
  bool cancel(QueuedRequest& request) noexcept;
  // Counts a request that a pipeline made at `begun`, and passes its answer to the watchers. On any thread.
  void count_step(const QueuedRequest& step, std::chrono::steady_clock::time_point begun) noexcept;
  // Likewise for a step of a decode loop, which counts as a run and not as a request.
  void count_loop_step(const QueuedRequest& step, std::chrono::steady_clock::time_point begun) noexcept;

  // Allows eviction. Call this before other threads can find the model. bell: rung when a use of the model ends.
  void may_be_unloaded(std::shared_ptr<RoomBell> bell) {
    uses_ = std::make_unique<ModelUses>(std::chrono::steady_clock::now(), std::move(bell));
  }
  // The uses of the model; null: it is never evicted. Requests hold a ModelUse.
  ModelUses* uses() const noexcept { return uses_.get(); }
  // The weight version at load time.
  uint64_t first_generation() const noexcept { return first_generation_; }
  bool watches_answers() const noexcept { return answers_.watched(); }
  // Whether it has named weight sets that would be lost with it.
  bool has_own_sets() const { return sets_ && !sets_on_disk_ && !model_->named_sets().empty(); }

  // Whether its devices are lost to this process. The first call that detects it logs it, and ends the server if
  // configured.
  bool failed() noexcept;

 private:
  // For a pipeline, only `interface` and `pipeline` are set.
  struct Parts {
    ModelSignature interface;
    std::shared_ptr<Model> model;
    std::unique_ptr<Pipeline> pipeline;
    std::chrono::nanoseconds inline_below{};
    std::shared_ptr<StoredWeights> kept;
    std::shared_ptr<Golden> golden;
    std::shared_ptr<const LoopPlan> loop;
  };
  ServedModel(Parts parts, const PipelineSpec* spec, const ModelConfig& config, TimerQueue& clock,
              std::shared_ptr<Statistics> statistics);
  [[noreturn, gnu::cold]] void fail_without_model() const;

  const ModelSignature interface_;
  const std::shared_ptr<Model> model_;        // null: a pipeline
  const std::unique_ptr<Pipeline> pipeline_;  // null: a model of a package
  const std::shared_ptr<Statistics> statistics_;
  const int64_t most_sets_;
  const int64_t sequence_places_;
  const bool sets_on_disk_;
  const uint64_t first_generation_;
  std::unique_ptr<ModelUses> uses_;
  const std::unique_ptr<ModelSets> sets_;
  AnswerTap answers_;
  std::atomic<int64_t> replicas_;
  InlinePolicy inline_policy_;
  Batcher batcher_;
  const std::unique_ptr<Sequences> sequences_;
  const std::string first_config_;
  std::string config_alone_;  // constant from end_sharing() on
  std::atomic<const std::string*> config_json_{&first_config_};
  const uint64_t most_body_bytes_;
  const GuardBounds guard_;
  const DeviceFault device_fault_;
  const std::string require_label_;
  const std::shared_ptr<StoredWeights> kept_;
  const std::shared_ptr<Golden> golden_;
  const std::shared_ptr<const LoopPlan> loop_;
  const std::unique_ptr<DecodeBatch> loop_rows_;
  std::atomic<const char*> loops_end_{nullptr};
  mutable Mutex recording_mutex_;
  std::shared_ptr<Recording> recording_ SCONCE_GUARDED_BY(recording_mutex_);
  std::atomic<bool> failure_said_{false};
  const std::unique_ptr<Shadow> shadow_;  // destroyed first: its thread uses the members above
};

// Whether a model has lost its devices and its settings ask for a restart.
bool restart_wanted() noexcept;

}  // namespace sconce::server
