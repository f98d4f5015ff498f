// DecodeBatch: continuous batching for a model with state in buffers. Each decode loop has one row of the buffers, and
// loops share runs (docs/generate.md).
//
// A group is one sequence of the model (scheduling/sequences.h). Each run of a group steps all of its loops that are
// ready:
//
//   kIdle --a loop's step--> kQueued --run starts--> kRunning --run ends--> kTelling --steps came--> kQueued
//                                                                              --none--> kIdle --no loop--> removed
//
// A run writes every row. Therefore the row of a loop without a step in this run is saved before the run and restored
// before the loop's next step. A new loop's row gets the buffers' initial values. A row without a loop steps on dummy
// tokens, and is reset before it has done more steps than a loop may do.
//
// While the loops of a run are notified, they submit their next steps; these steps wait until all loops are notified.
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

namespace sconce::server::scheduling {

class DecodeBatch final : private TimerQueue::Alarm {
 public:
  class Group;
  // A loop's row, from its first step until leave(). The loop owns it and must not move it.
  struct RowSlot {
    Group* group = nullptr;  // null: no row
    size_t row = 0;
  };

  // follow: loops switch to new weights, as sequences do (setting sequence_weights). All other arguments outlive the
  // object.
  DecodeBatch(const ModelSignature& interface, const LoopPlan& plan, SequenceHost& host, Sequences& sequences,
              const BatchPolicy& policy, bool follow, TimerQueue& clock);
  // All loops must have left.
  ~DecodeBatch() override;

  // Queues a step of one row for the next run of the loop's group. Without a slot it is the loop's first step: the loop
  // takes a free row, preferably beside loops with the same weight set. set: as in Sequences::submit(). Throws
  // kQueueFull if all rows of all slots are taken, kInvalidArgument, or the group's failure. Then finished() is not
  // called, and a first step has taken no row.
  void submit(QueuedRequest& step, std::optional<std::string_view> set, RowSlot& slot);
  // The loop has ended. Does nothing without a slot.
  void leave(RowSlot& slot) noexcept;

 private:
  using Clock = QueuedRequest::Clock;
  struct Row;

  void ring() noexcept override;
  void take_row(const QueuedRequest& step, std::string_view set, RowSlot& slot) SCONCE_REQUIRES(mutex_);
  void free_row(RowSlot& slot) noexcept SCONCE_REQUIRES(mutex_);
  // Closes the group to new loops if it is empty. True: the caller ends its sequence, without holding the mutex.
  bool close_if_empty(Group& group) noexcept SCONCE_REQUIRES(mutex_);
  std::unique_ptr<Group> remove(Group& group) noexcept SCONCE_REQUIRES(mutex_);
  std::exception_ptr launch(Group& group) noexcept;
  // Whether a request of the group's run is still wanted.
  bool any_wanted(const Group& group) const noexcept;
  void gather(Group& group);
  void place(Group& group, Row& row, uint32_t index, QueuedRequest* step) SCONCE_REQUIRES(mutex_);
  void ended(Group& group) noexcept;
  // After a run, or in place of a run that failed with `not_run`: notifies the loops that must stop, and queues the
  // next run if there is one.
  void go_on(Group& group, std::exception_ptr not_run) noexcept;
  void tell(QueuedRequest& step, std::exception_ptr error) const noexcept;

  const ModelSignature& interface_;
  const LoopPlan& plan_;
  SequenceHost& host_;
  Sequences& sequences_;
  const BatchPolicy& policy_;
  const bool follow_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Group>> groups_ SCONCE_GUARDED_BY(mutex_);
  uint64_t begun_ SCONCE_GUARDED_BY(mutex_) = 0;    // number of groups so far
  uint64_t tickets_ SCONCE_GUARDED_BY(mutex_) = 0;  // number of steps so far
};

}  // namespace sconce::server::scheduling
