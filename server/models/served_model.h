// ServedModel: a loaded version of a model with the server's data about it. Thread-safe. The reaper destroys it when it
// is no longer served and its last request has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/base/alarm_clock.h"
#include "server/base/config.h"
#include "server/base/reaper.h"
#include "server/batching/batcher.h"
#include "server/judging/answer_tap.h"
#include "server/judging/golden.h"
#include "server/judging/guard_counts.h"
#include "server/judging/shadow.h"
#include "server/kept/weight_store.h"
#include "server/models/model_sets.h"
#include "server/models/statistics.h"
#include "server/signature/interface.h"

namespace sconce::server {

class Recording;

class ServedModel final : public Reaped {
 public:
  // statistics: continue those of earlier loads. inline_below: see settings.def. kept: null if sets are not kept.
  // golden: null if the model has no golden requests.
  ServedModel(ModelInterface interface, std::shared_ptr<Model> model, const ModelConfig& config, AlarmClock& clock,
              std::shared_ptr<Statistics> statistics, std::chrono::nanoseconds inline_below,
              std::shared_ptr<KeptWeights> kept, std::shared_ptr<Golden> golden);

  const ModelInterface& interface() const noexcept { return interface_; }
  Model& model() const noexcept { return *model_; }
  const BatchPolicy& policy() const noexcept { return batcher_.policy(); }
  const std::string& config_json() const noexcept { return config_json_; }
  Statistics& statistics() const noexcept { return *statistics_; }
  ModelStatistics statistics_now() const;
  // Call this before replicas are added, with their new number.
  void reserve_replicas(int64_t count) { batcher_.reserve(count); }
  // Where its published sets are kept; null: nowhere.
  const std::shared_ptr<KeptWeights>& kept() const noexcept { return kept_; }
  // Why its active set is not to be served: a constant has no value, or the label is not require_label. Empty: it is.
  std::string why_held() const;
  // Tells it of every run that ends. Call this before the first request; it outlives the model.
  void tell_runs(IdleWatch& watch) noexcept { batcher_.tell_runs(watch); }
  // Call this after replicas were added or removed, with their new number.
  void set_replicas(int64_t count) noexcept {
    replicas_.store(count, std::memory_order_relaxed);
    batcher_.set_replicas(count);
  }
  int64_t replicas() const noexcept { return replicas_.load(std::memory_order_relaxed); }
  // Null: the model holds no named sets.
  ModelSets* sets() const noexcept { return sets_.get(); }
  int64_t most_sets() const noexcept { return most_sets_; }
  // How its weights are watched after they were published, unless a request says otherwise.
  const GuardBounds& guard() const noexcept { return guard_; }
  // Passes answers to what judges weights: the shadow, recordings and watches.
  AnswerTap& answers() noexcept { return answers_; }
  // The recording of its answers that was begun last; null: none was.
  std::shared_ptr<Recording> recording() const;
  // kBusy unless the last one is `before`.
  void record(std::shared_ptr<Recording> recording, const std::shared_ptr<Recording>& before);
  // The golden requests that new weights must pass; null: there are none.
  const std::shared_ptr<Golden>& golden() const noexcept { return golden_; }
  // Runs live requests on the staged set too.
  Shadow& shadow() const noexcept { return *shadow_; }
  // The largest body of a request that the model can take.
  uint64_t most_body_bytes() const noexcept { return most_body_bytes_; }
  // Requests that wait for a run.
  int64_t pending() const noexcept { return batcher_.waiting(); }

  // True: the caller runs the model on its own thread, then calls ran_here(). False: the request goes to the queue.
  bool run_here(size_t input_bytes) noexcept;
  // compute: zero if the model did not run.
  void ran_here(std::chrono::nanoseconds compute, size_t input_bytes) noexcept;
  void submit(QueuedRequest& request) { batcher_.submit(request); }
  bool cancel(QueuedRequest& request) noexcept { return batcher_.cancel(request); }

  // Whether its devices are lost to this process. The first call that finds out logs it, and ends the server if that is
  // configured.
  bool failed() noexcept;

 private:
  const ModelInterface interface_;
  const std::shared_ptr<Model> model_;
  const std::shared_ptr<Statistics> statistics_;
  const int64_t most_sets_;
  const std::unique_ptr<ModelSets> sets_;
  AnswerTap answers_;
  std::atomic<int64_t> replicas_;
  InlinePolicy inline_policy_;
  Batcher batcher_;
  const std::string config_json_;
  const uint64_t most_body_bytes_;
  const GuardBounds guard_;
  const DeviceFault device_fault_;
  const std::string require_label_;
  const std::shared_ptr<KeptWeights> kept_;
  const std::shared_ptr<Golden> golden_;
  mutable Mutex recording_mutex_;
  std::shared_ptr<Recording> recording_ SCONCE_GUARDED_BY(recording_mutex_);
  std::atomic<bool> failure_said_{false};
  const std::unique_ptr<Shadow> shadow_;  // destroyed first: its thread uses the members above
};

// Whether a model lost its devices and its settings ask for a restart.
bool restart_wanted() noexcept;

}  // namespace sconce::server
