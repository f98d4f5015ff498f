// Sequences: the live sequences of a model, the replica queue in which the steps of each wait, and the end of idle
// sequences. Thread-safe.
//
//   start --> live --end, a step that fails in the model, idle timeout--> ended
//              ^  |
//              +--+ start: restarts in the same slot
//
// A sequence has a slot on one replica (sconce/model.h). Each replica has a queue of steps, which run one by one in the
// order of submit(). Each step records its sequence's epoch. If the sequence restarts or its first step never
// runs, later steps of the old epoch are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/scheduling/batching/batcher.h"
#include "server/scheduling/sequence_host.h"
#include "server/scheduling/signature/controls.h"
#include "server/support/timer_queue.h"

namespace sconce::server::scheduling {

class Sequences final : private TimerQueue::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  struct Live;
  // The step of a request, from submit() to finish().
  struct Step {
    std::shared_ptr<Live> live;  // null: not a step
    uint64_t epoch = 0, epoch_before = 0;
    bool starts = false, ends = false;
  };
  struct Counts {
    uint64_t live = 0, begun = 0, idle = 0, failed = 0,
             refused = 0;  // `live` is the current number; the others are totals
  };

  // name: the model's, for errors. host: outlives the object. idle: a sequence without a step ends after this time.
  Sequences(std::string name, SequenceHost& host, const BatchPolicy& policy, std::chrono::nanoseconds idle,
            TimerQueue& clock, InlinePolicy& inline_policy, int64_t replicas);
  ~Sequences() override;

  // Queues the request as a step; `step` refers to it until finish(). set: the named weight set that the request asks
  // for; nullopt: none. kInvalidArgument in the cases of Triton, kQueueFull; then nothing has changed.
  void submit(QueuedRequest& request, const SequenceParameters& asked, std::optional<std::string_view> set, Step& step);
  // Like Batcher::cancel(), for a request that is a step. If it returns true, call finish_cancelled().
  bool cancel(QueuedRequest& request) noexcept;
  // The step has ended, with `error` if it failed.
  void finish(Step& step, const std::exception_ptr& error) noexcept;
  // Likewise, for a step that was cancelled before it ran.
  void finish_cancelled(Step& step) noexcept { end(step, Outcome::kRefused); }
  // Ends a sequence that has no step in progress. Does nothing if the sequence has already ended.
  void end_now(const SequenceId& id) noexcept;

  Counts counts() const;
  int64_t waiting() const noexcept;
  // Like the functions of Batcher.
  void reserve(int64_t replicas);
  void tell_runs(IdleWatch& watch) noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  using Map = std::unordered_map<std::string, std::shared_ptr<Live>, Hash, std::equal_to<>>;

  enum class Outcome : int8_t { kDone, kRefused, kFailed };  // kRefused: the state is unchanged

  void ring() noexcept override;
  void end(Step& step, Outcome outcome) noexcept;
  void enter(const SequenceParameters& asked, std::optional<std::string_view> set, Step& step) SCONCE_REQUIRES(mutex_);
  std::shared_ptr<Live> begin(std::string_view key, bool rows) SCONCE_REQUIRES(mutex_);
  // Removes the sequence from the map. The caller destroys the result without holding the mutex.
  std::shared_ptr<Live> forget(Live& live) noexcept SCONCE_REQUIRES(mutex_);
  void wait_idle(Live& live) noexcept SCONCE_REQUIRES(mutex_);
  void leave_idle(Live& live) noexcept SCONCE_REQUIRES(mutex_);

  const std::string name_;
  SequenceHost& host_;
  const std::chrono::nanoseconds idle_;
  BatchPolicy policy_;
  TimerQueue& clock_;
  InlinePolicy& inline_policy_;
  IdleWatch* idle_watch_ = nullptr;
  mutable Mutex mutex_;
  Map live_ SCONCE_GUARDED_BY(mutex_);
  Live *longest_idle_ SCONCE_GUARDED_BY(mutex_) = nullptr, *last_idle_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  bool alarm_set_ SCONCE_GUARDED_BY(mutex_) = false;
  Counts counts_ SCONCE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batcher>> queues_ SCONCE_GUARDED_BY(mutex_);  // by replica; a batcher is never removed
};

}  // namespace sconce::server::scheduling
