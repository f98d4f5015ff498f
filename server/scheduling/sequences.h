// Sequences: which sequences of a model are live, on which replica's queue their steps wait, and when one that nobody
// goes on with ends. Thread-safe.
//
//   start --> live --end, a step that fails in the model, idle time--> over
//              ^  |
//              +--+ start: begins anew in the same place
//
// A sequence has a place on one replica (sconce/model.h). Each replica has a queue for steps, which run one by one
// in the order of submit(). A step belongs to the beginning that was the last one when it came (`life`), so if that
// never runs, neither does the step.
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
#include "server/scheduling/signature/controls.h"
#include "server/support/timer_queue.h"

namespace sconce::server {

class Sequences final : private TimerQueue::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  struct Live;
  // Of a request, from submit() to finish().
  struct Step {
    std::shared_ptr<Live> live;  // null: it is no step
    uint64_t life = 0, life_before = 0;
    bool starts = false, ends = false;
  };
  struct Counts {
    uint64_t live = 0, begun = 0, idle = 0, failed = 0, refused = 0;  // all but live: so far
  };

  // name: the model's, for errors. idle: after it a sequence without a step ends.
  Sequences(std::string name, Model& model, const BatchPolicy& policy, std::chrono::nanoseconds idle, TimerQueue& clock,
            InlinePolicy& inline_policy, int64_t replicas);
  ~Sequences() override;

  // Queues the request as a step, which is in `step` until finish(). set: the named set that the request asks for;
  // nullopt: it names none. kInvalidArgument as Triton, kQueueFull; then nothing has happened.
  void submit(QueuedRequest& request, const SequenceParameters& asked, std::optional<std::string_view> set, Step& step);
  // As Batcher::cancel(), of a request that is a step. Call finish_cancelled() if it returns true.
  bool cancel(QueuedRequest& request) noexcept;
  // The step is over, by this error if there is one.
  void finish(Step& step, const std::exception_ptr& error) noexcept;
  // The same for a step that was cancelled before it ran.
  void finish_cancelled(Step& step) noexcept { end(step, Outcome::kRefused); }
  // Ends a sequence that has no step under way. Does nothing if it is over already.
  void end_now(const SequenceId& id) noexcept;

  Counts counts() const;
  int64_t waiting() const noexcept;
  // As the Batcher's.
  void reserve(int64_t replicas);
  void tell_runs(IdleWatch& watch) noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  using Map = std::unordered_map<std::string, std::shared_ptr<Live>, Hash, std::equal_to<>>;

  enum class Outcome : int8_t { kDone, kRefused, kFailed };  // kRefused: the state is as before

  void ring() noexcept override;
  void end(Step& step, Outcome outcome) noexcept;
  void enter(const SequenceParameters& asked, std::optional<std::string_view> set, Step& step) SCONCE_REQUIRES(mutex_);
  std::shared_ptr<Live> begin(std::string_view key, bool rows) SCONCE_REQUIRES(mutex_);
  // Nobody finds it any more. The caller drops it without the mutex.
  std::shared_ptr<Live> forget(Live& live) noexcept SCONCE_REQUIRES(mutex_);
  void wait_idle(Live& live) noexcept SCONCE_REQUIRES(mutex_);
  void leave_idle(Live& live) noexcept SCONCE_REQUIRES(mutex_);

  const std::string name_;
  Model& model_;
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
  std::vector<std::unique_ptr<Batcher>> queues_ SCONCE_GUARDED_BY(mutex_);  // by replica; the batchers stay
};

}  // namespace sconce::server
