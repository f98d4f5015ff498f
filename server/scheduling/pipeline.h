// Pipeline: executes the runs of a model that consists of other models. Each step is a request to its own model: it
// waits in that model's queue and is batched with other requests there. A step starts when the steps that it depends on
// have ended; independent steps run in parallel. Tensors are passed on without copies, between models on a GPU in the
// GPU's memory.
//
// A run starts on any thread and continues on the threads where its steps end. If an I/O thread starts it, steps
// shorter than a thread hand-over run on that thread, like single requests (Schedulable::run_here). Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "server/scheduling/batching/batcher.h"
#include "server/scheduling/pipelines/pipeline_plan.h"
#include "server/scheduling/schedulable.h"
#include "server/support/timer_queue.h"

namespace sconce::server::scheduling {

class Pipeline final {
 public:
  // members: the model of each step. reject_late: whether a run stops when its request's time for waiting has passed.
  // clock: gives the time; outlives the object.
  Pipeline(PipelinePlan plan, std::vector<std::shared_ptr<Schedulable>> members, bool reject_late,
           const TimerQueue& clock);
  ~Pipeline();

  // Executes a run of one request: run.finished() is called when all of its steps have ended. If a step fails or the
  // request was abandoned, steps that have not started are skipped. An error names its step.
  void submit(BatchRun& run) noexcept;

  // While an object lives, runs that this thread starts may execute models on it.
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

  // Whether the model accepts this input in GPU memory, without a cast.
  bool takes_on_device(size_t step, size_t input) const noexcept;

  const PipelinePlan plan_;
  const std::vector<std::shared_ptr<Schedulable>> members_;
  std::vector<bool> stays_;  // by step: another step reads some of its outputs on the device
  const bool reject_late_;
  const TimerQueue& clock_;
};

}  // namespace sconce::server::scheduling
