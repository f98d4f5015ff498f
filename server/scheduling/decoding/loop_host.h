// LoopHost: the model of decode loops, as DecodeLoop sees it. Thread-safe.
#pragma once

#include <span>

#include "sconce/tensor.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/scheduling/decoding/decode_batch.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/sequences.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/statistics.h"

namespace sconce::server::scheduling {

class LoopHost {
 public:
  using Clock = QueuedRequest::Clock;

  virtual ~LoopHost() = default;

  virtual const ModelSignature& interface() const noexcept = 0;
  virtual const LoopPlan& plan() const noexcept = 0;
  virtual LoopCounts& counts() noexcept = 0;
  virtual Clock::time_point now() const noexcept = 0;

  // The queue of steps is the first of these that the model has.
  virtual DecodeBatch* rows() noexcept = 0;       // null: loops share no sequence
  virtual Sequences* sequences() noexcept = 0;    // null: the plan has no sequence
  virtual void enqueue(QueuedRequest& step) = 0;  // kQueueFull

  // Throws the error of a run with these inputs, if it can be determined without running.
  virtual void check_inputs(std::span<const Tensor> inputs) const = 0;
  // Whether validators of weights watch its answers. They compare them on the host.
  virtual bool watches_answers() const noexcept = 0;
  // Counts a step that was submitted at `begun`: a run, and not a request. Passes its answer to the watchers.
  virtual void count_step(const QueuedRequest& step, Clock::time_point begun) noexcept = 0;
  // Why loops must stop before their next step; null: they continue.
  virtual const char* why_end() const noexcept = 0;
};

}  // namespace sconce::server::scheduling
