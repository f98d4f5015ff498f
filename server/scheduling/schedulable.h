// Schedulable: a model as a pipeline sees it: a request waits in its queue, or runs on the caller's thread.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "sconce/model.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

class Schedulable {
 public:
  virtual ~Schedulable() = default;

  virtual const ModelSignature& interface() const noexcept = 0;
  // The initial policy: a model may stop sharing runs later.
  virtual const BatchPolicy& policy() const noexcept = 0;
  // Whether validators of weights watch its answers. They compare them on the host.
  virtual bool watches_answers() const noexcept = 0;
  // Throws the error of a run with these inputs, if it can be determined without running.
  virtual void check_inputs(std::span<const Tensor> inputs) const = 0;
  // Queues a request on a thread that must not run models. If this throws, nothing happens to the request.
  virtual void enqueue(QueuedRequest& request) = 0;

  // True: the caller calls run() on its own thread, then ran_here(). False: the request must be queued.
  virtual bool run_here(size_t input_bytes) noexcept = 0;
  virtual RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const WeightSet* weights,
                      bool device_outputs) = 0;
  // compute: zero if the model did not run.
  virtual void ran_here(std::chrono::nanoseconds compute, size_t input_bytes) noexcept = 0;

  // Counts a request that a pipeline made at `begun`, and passes its answer to the watchers. On any thread.
  virtual void count_step(const QueuedRequest& step, QueuedRequest::Clock::time_point begun) noexcept = 0;
};

}  // namespace sconce::server::scheduling
