// Pipeline: performs the runs of a model that is made of others. Each step is a request to its own model, so it waits
// in that model's queue and shares runs with whatever waits there. A step begins when the steps that it needs have
// ended; steps that need nothing of each other run at the same time. Tensors are handed on as they are, from one model
// on a GPU to the next in the GPU's memory.
//
// A run begins on any thread and goes on where its steps end. Where an I/O thread begins it, steps that are shorter
// than a hand-over run there too, as single requests do (ServedModel::run_here). Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "server/scheduling/batching/batcher.h"
#include "server/scheduling/pipelines/pipeline_plan.h"

namespace sconce::server {

class ServedModel;

class Pipeline final {
 public:
  // members: the model of each step. reject_late: whether a run ends where its request's time for waiting has ended.
  Pipeline(PipelinePlan plan, std::vector<std::shared_ptr<ServedModel>> members, bool reject_late);
  ~Pipeline();

  const PipelinePlan& plan() const noexcept { return plan_; }
  std::span<const std::shared_ptr<ServedModel>> members() const noexcept { return members_; }
  // Performs a run of one request: run.finished() is called when all of its steps have ended. If a step fails or nobody
  // waits any more, steps that have not begun are left out. An error names its step.
  void submit(BatchRun& run) noexcept;

  // While it lives, runs that this thread begins may execute models on it.
  class Here {
   public:
    Here() noexcept;
    ~Here();
    Here(const Here&) = delete;

   private:
    const bool before_;
  };

 private:
  class Run;
  class Step;

  // Whether the model takes this input, without a cast, in the memory of a GPU.
  bool takes_on_device(size_t step, size_t input) const noexcept;

  const PipelinePlan plan_;
  const std::vector<std::shared_ptr<ServedModel>> members_;
  std::vector<bool> stays_;  // by step: some other step takes some of its outputs on the device
  const bool reject_late_;
};

}  // namespace sconce::server
