// PackageModel: a loaded version of a model of a package, as it is served. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sconce/model.h"
#include "server/registry/model_loops.h"
#include "server/registry/model_weights.h"
#include "server/registry/served_model.h"
#include "server/scheduling/sequence_host.h"

namespace sconce::server::registry {

// A loaded model before it is served.
struct LoadedModel {
  scheduling::ModelSignature interface;
  std::shared_ptr<Model> model;
  std::shared_ptr<weights::StoredWeights> stored;    // null: no store
  std::string refused;                               // why its weights must not be served; empty: they may be
  std::shared_ptr<weights::Golden> golden;           // null: no golden requests
  std::shared_ptr<const scheduling::LoopPlan> loop;  // null: no decode loop
};

class PackageModel final : public ServedModel {
 public:
  // statistics: shared with earlier loads. inline_below: see settings.def.
  PackageModel(LoadedModel loaded, const ModelConfig& config, std::shared_ptr<scheduling::Statistics> statistics,
               TimerQueue& clock, std::chrono::nanoseconds inline_below);

  ModelWeights* find_weights() const noexcept override { return weights_.get(); }
  scheduling::Sequences* sequences() const noexcept override { return sequences_.get(); }
  int64_t sequence_places() const noexcept override { return sequence_places_; }
  scheduling::LoopHost* loop_host() const noexcept override { return loops_.get(); }
  int64_t loop_places() const noexcept override { return loops_ ? loops_->places() : 0; }
  void end_loops(const char* why) noexcept override {
    if (loops_) loops_->end(why);
  }

  bool run_here(size_t input_bytes) noexcept override;
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* weights,
              bool device_outputs) override;
  void check_inputs(std::span<const Tensor> inputs) const override { model_->check_inputs(inputs); }
  bool failed() noexcept override;

 private:
  static Basis basis_of(LoadedModel& loaded, const ModelConfig& config,
                        std::shared_ptr<scheduling::Statistics> statistics, std::chrono::nanoseconds inline_below);

  class Host final : public scheduling::SequenceHost {
   public:
    explicit Host(Model& model) : model_(model) {}
    std::shared_ptr<Sequence> make_sequence(bool rows) override { return model_.make_sequence(rows); }
    void submit(RunRequest& run) override { model_.submit(run); }
    uint64_t weight_version() const noexcept override { return model_.weight_version(); }

   private:
    Model& model_;
  };

  const std::shared_ptr<Model> model_;
  const DeviceFault device_fault_;
  std::atomic<bool> failure_said_{false};
  const int64_t sequence_places_;
  Host host_;
  const std::unique_ptr<scheduling::Sequences> sequences_;  // null: none
  const std::unique_ptr<ModelLoops> loops_;                 // null: none
  // Destroyed first: the thread of the shadow uses the members above.
  const std::unique_ptr<ModelWeights> weights_;
};

}  // namespace sconce::server::registry
