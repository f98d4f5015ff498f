// ModelLoops: the decode loops of a served model: their plan, the rows that they share, and why they must end.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "server/registry/served_model.h"
#include "server/scheduling/decoding/decode_batch.h"
#include "server/scheduling/decoding/loop_host.h"
#include "server/scheduling/sequence_host.h"
#include "server/support/config.h"
#include "server/support/timer_queue.h"

namespace sconce::server::registry {

class ModelLoops final : public scheduling::LoopHost {
 public:
  // served, host, clock: outlive the object. The sequences of served exist.
  ModelLoops(ServedModel& served, scheduling::SequenceHost& host, std::shared_ptr<const scheduling::LoopPlan> plan,
             const ModelConfig& config, TimerQueue& clock);

  // Stops loops before their next step, with this error; the text is static.
  void end(const char* why) noexcept { end_.store(why, std::memory_order_relaxed); }
  // Maximum number of running loops; 0: unlimited.
  int64_t places() const noexcept;

  const scheduling::ModelSignature& interface() const noexcept override { return served_.interface(); }
  const scheduling::LoopPlan& plan() const noexcept override { return *plan_; }
  scheduling::LoopCounts& counts() noexcept override { return served_.statistics().loops(); }
  Clock::time_point now() const noexcept override { return clock_.now(); }
  scheduling::DecodeBatch* rows() noexcept override { return rows_.get(); }
  scheduling::Sequences* sequences() noexcept override { return served_.sequences(); }
  void enqueue(scheduling::QueuedRequest& step) override { served_.enqueue(step); }
  void check_inputs(std::span<const Tensor> inputs) const override { served_.check_inputs(inputs); }
  bool watches_answers() const noexcept override { return served_.watches_answers(); }
  void count_step(const scheduling::QueuedRequest& step, Clock::time_point begun) noexcept override;
  const char* why_end() const noexcept override { return end_.load(std::memory_order_relaxed); }

 private:
  ServedModel& served_;
  const std::shared_ptr<const scheduling::LoopPlan> plan_;
  TimerQueue& clock_;
  const std::unique_ptr<scheduling::DecodeBatch> rows_;  // null: each loop has its own sequence, or no state here
  std::atomic<const char*> end_{nullptr};
};

}  // namespace sconce::server::registry
