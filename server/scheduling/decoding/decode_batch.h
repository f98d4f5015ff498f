// DecodeBatch: loops that share runs of a model whose state is in buffers, each in a row of them (docs/generate.md).
//
// A group is one sequence of the model (scheduling/sequences.h), whose runs step all its loops that are ready at once:
//
//   kIdle --a loop's step--> kQueued --its turn--> kRunning --over--> kTelling --steps came meanwhile--> kQueued
//                                                                              --none--> kIdle --no loop--> gone
//
// A run writes every row. So before it, a loop that does not step in it has its row set aside, and gets it back before
// its next step; a loop that begins gets the buffers' initial values. A row without a loop steps on tokens that nobody
// sees, and begins anew before it has done more steps than a loop might.
//
// While a run's results are told, its loops submit their next steps, which wait for each other until all are told.
// If a run fails, all loops of the group fail. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/sequences.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/timer_queue.h"

namespace sconce::server {

class DecodeBatch final : private TimerQueue::Alarm {
 public:
  class Group;
  // A loop's row, from its first step until leave(). The loop keeps it where it is.
  struct RowSlot {
    Group* group = nullptr;  // null: it has none
    size_t row = 0;
  };

  // follow: loops go on with new weights, as sequences do (setting sequence_weights). All else outlives it.
  DecodeBatch(const ModelSignature& interface, const LoopPlan& plan, Model& model, Sequences& sequences,
              const BatchPolicy& policy, bool follow, TimerQueue& clock);
  // No loop may be left.
  ~DecodeBatch() override;

  // Queues a step of one row for the next run of the loop's group. Without a seat it is the loop's first step: it takes
  // a row, beside loops with the same set of weights if one is free. set: as Sequences::submit(). If this throws
  // (kQueueFull: all rows of all places are taken; kInvalidArgument; what the group failed by), finished() is not
  // called, and a first step has taken nothing.
  void submit(QueuedRequest& step, std::optional<std::string_view> set, RowSlot& seat);
  // The loop is over. Does nothing without a seat.
  void leave(RowSlot& seat) noexcept;

 private:
  using Clock = QueuedRequest::Clock;
  struct Row;

  void ring() noexcept override;
  void take_row(const QueuedRequest& step, std::string_view set, RowSlot& seat) SCONCE_REQUIRES(mutex_);
  void free_row(RowSlot& seat) noexcept SCONCE_REQUIRES(mutex_);
  // Nobody joins it any more. True: the caller ends its sequence, without the mutex.
  bool close_if_empty(Group& group) noexcept SCONCE_REQUIRES(mutex_);
  std::unique_ptr<Group> remove(Group& group) noexcept SCONCE_REQUIRES(mutex_);
  std::exception_ptr launch(Group& group) noexcept;
  // Of a run.
  bool any_wanted(const Group& group) const noexcept;
  void gather(Group& group);
  void place(Group& group, Row& row, uint32_t index, QueuedRequest* step) SCONCE_REQUIRES(mutex_);
  void ended(Group& group) noexcept;
  // After a run, or instead of one, which failed by `not_run`: tells those who cannot go on, and queues the next run or
  // none.
  void go_on(Group& group, std::exception_ptr not_run) noexcept;
  void tell(QueuedRequest& step, std::exception_ptr error) const noexcept;

  const ModelSignature& interface_;
  const LoopPlan& plan_;
  Model& model_;
  Sequences& sequences_;
  const BatchPolicy& policy_;
  const bool follow_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Group>> groups_ SCONCE_GUARDED_BY(mutex_);
  uint64_t begun_ SCONCE_GUARDED_BY(mutex_) = 0;    // groups so far
  uint64_t tickets_ SCONCE_GUARDED_BY(mutex_) = 0;  // steps so far
};

}  // namespace sconce::server
