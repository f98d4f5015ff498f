// ServedModel: a loaded version of a model, or a pipeline of such models, as requests and administration see it
// (PackageModel, PipelineModel). This class has what both have: the queue, counters, answers and uses. Thread-safe. The
// DeferredDeleter destroys it when it is no longer served and its last request has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sconce/model.h"
#include "server/registry/lazy_load/model_uses.h"
#include "server/scheduling/batching/batcher.h"
#include "server/scheduling/decoding/loop_host.h"
#include "server/scheduling/schedulable.h"
#include "server/scheduling/sequences.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/statistics.h"
#include "server/support/config.h"
#include "server/support/process/deferred_deleter.h"
#include "server/support/timer_queue.h"
#include "server/weights/validation/answer_tap.h"

namespace sconce::server::registry {

class ModelWeights;

class ServedModel : public DeletedLater, public scheduling::Schedulable {
 public:
  const scheduling::ModelSignature& interface() const noexcept final { return interface_; }
  // The initial policy; see end_sharing().
  const scheduling::BatchPolicy& policy() const noexcept final { return batcher_.policy(); }
  const std::string& config_json() const noexcept { return *config_json_.load(std::memory_order_acquire); }
  scheduling::Statistics& statistics() const noexcept { return *statistics_; }
  scheduling::ModelStatistics statistics_now() const;
  // The size limit of a request's body.
  uint64_t most_body_bytes() const noexcept { return most_body_bytes_; }
  // Passes answers to validators of weights: the shadow, recordings and guards.
  weights::AnswerTap& answers() noexcept { return answers_; }
  bool watches_answers() const noexcept final { return answers_.watched(); }

  bool is_pipeline() const noexcept { return interface_.pipeline; }
  // The models of a pipeline's steps; none for a model of a package.
  virtual std::span<const std::shared_ptr<ServedModel>> members() const noexcept { return {}; }
  // Null for a pipeline, which has no weights and no replicas of its own.
  virtual ModelWeights* find_weights() const noexcept = 0;
  // These two: kUnsupported for a pipeline.
  ModelWeights& weights() const;
  Model& model() const;
  // Null: requests are not steps of sequences. Otherwise all requests from clients are.
  virtual scheduling::Sequences* sequences() const noexcept { return nullptr; }
  // Maximum number of live sequences; 0: no sequences.
  virtual int64_t sequence_places() const noexcept { return 0; }
  // The decode loops for requests to generate; null: such a request runs the model once.
  virtual scheduling::LoopHost* loop_host() const noexcept { return nullptr; }
  // Their plan; null: no decode loops.
  const scheduling::LoopPlan* loop() const noexcept {
    const scheduling::LoopHost* const host = loop_host();
    return host ? &host->plan() : nullptr;
  }
  // Maximum number of running decode loops; 0: unlimited, or no loop.
  virtual int64_t loop_places() const noexcept { return 0; }
  // Stops decode loops before their next step, with this error; the text is static.
  virtual void end_loops(const char* /*why*/) noexcept {}

  // A trial found that rows influence each other, although it was proved that they do not: from now on each request
  // runs alone, and the log and config_json() report it. Call this once. config: the model's settings.
  void end_sharing(const scheduling::InvarianceFinding& found, const ModelConfig& config);
  // Call this before replicas are added, with the new number.
  void reserve_replicas(int64_t count);
  // Call this after replicas were added or removed, with the new number.
  void set_replicas(int64_t count) noexcept;
  // For a pipeline, the maximum number of simultaneous runs.
  int64_t replicas() const noexcept { return replicas_.load(std::memory_order_relaxed); }
  // Notifies the watch of every run that ends. Call this before the first request. The watch outlives the model.
  void tell_runs(scheduling::IdleWatch& watch) noexcept;
  // Requests that wait for a run, except steps of sequences.
  int64_t queued() const noexcept { return batcher_.waiting(); }
  // All requests that wait for a run.
  int64_t pending() const noexcept;

  // Queues a request on an I/O thread, for one of its connections. A pipeline may run short steps before this returns.
  virtual void submit(scheduling::QueuedRequest& request) { batcher_.submit(request); }
  void enqueue(scheduling::QueuedRequest& request) final { batcher_.submit(request); }
  // True: the request was still waiting, and finished() will not be called. False: the request is abandoned, so a
  // pipeline starts no further step for it.
  bool cancel(scheduling::QueuedRequest& request) noexcept;
  void ran_here(std::chrono::nanoseconds compute, size_t input_bytes) noexcept final;
  void count_step(const scheduling::QueuedRequest& step, std::chrono::steady_clock::time_point begun) noexcept final;

  // Whether its devices are lost to this process. The first call that detects it logs it, and ends the server if
  // configured.
  virtual bool failed() noexcept = 0;

  // Allows eviction. Call this before other threads can find the model. bell: rung when a use of the model ends.
  void may_be_unloaded(std::shared_ptr<RoomBell> bell) {
    uses_ = std::make_unique<ModelUses>(std::chrono::steady_clock::now(), std::move(bell));
  }
  // The uses of the model; null: it is never evicted. Requests hold a ModelUse.
  ModelUses* uses() const noexcept { return uses_.get(); }

 protected:
  struct Basis {
    scheduling::ModelSignature interface;
    scheduling::BatchPolicy policy{};
    std::string config_json{};
    uint64_t most_body_bytes = 0;
    std::chrono::nanoseconds inline_below{};  // longer runs never run on an I/O thread
    int64_t replicas = 0;
    scheduling::Batcher::Submit submit{};                  // owns what performs the runs
    std::shared_ptr<scheduling::Statistics> statistics{};  // shared with earlier loads
  };
  ServedModel(Basis basis, TimerQueue& clock);

  scheduling::InlinePolicy& inline_policy() noexcept { return inline_policy_; }
  // For run_here(): whether the policy lets the request run on its thread. Takes a permit if so.
  bool may_run_here(size_t input_bytes) noexcept {
    // Waiting requests have precedence.
    return batcher_.waiting() == 0 && inline_policy_.run_inline(input_bytes) && batcher_.acquire_permit();
  }

 private:
  const scheduling::ModelSignature interface_;
  const std::shared_ptr<scheduling::Statistics> statistics_;
  const std::string first_config_;
  std::string config_alone_;  // constant from end_sharing() on
  std::atomic<const std::string*> config_json_{&first_config_};
  const uint64_t most_body_bytes_;
  std::unique_ptr<ModelUses> uses_;
  weights::AnswerTap answers_;
  std::atomic<int64_t> replicas_;
  scheduling::InlinePolicy inline_policy_;
  scheduling::Batcher batcher_;
};

// Whether a model has lost its devices and its settings ask for a restart.
bool restart_wanted() noexcept;

}  // namespace sconce::server::registry
