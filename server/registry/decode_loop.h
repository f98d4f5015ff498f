// DecodeLoop: runs a model again and again for one request, from a prompt to its continuation (docs/generate.md). Each
// run is a request in the model's queue, so that loops share runs with each other; if the state is in buffers, it is a
// step of a sequence of the loop's own. The thread on which a run ends picks the token and submits the next run.
//
//   kIdle --begin--> kRunning --a run is over, room for another token--> kRunning
//                    kRunning --no room--> kPaused --take--> kRunning
//                    kRunning, kPaused --last token, error, cancel--> kOver --clear--> kIdle
//
// One consumer takes tokens while the loop goes on. take() says when to wait, and then `notify` is called once: at most
// one notice is under way. Reused from request to request. cancel(), take() and let_go() are for the consumer's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/served_model.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/decoding/pick.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server {

class DecodeLoop final : private QueuedRequest {
 public:
  using Clock = QueuedRequest::Clock;
  using Notify = void (*)(void* context) noexcept;  // on any thread
  enum class End : int8_t { kNone, kStop, kLength, kDeadline, kFailed };
  enum class Look : int8_t { kTokens, kWait, kOver };  // kOver: these are the last ones

  struct Terms {
    std::span<const Tensor> inputs;  // of the model; those that the loop fills are undefined
    uint64_t priority = 0;
    std::chrono::nanoseconds timeout{};   // of each run's waiting; 0: none
    const WeightSet* weights = nullptr;   // a named set, which the owner keeps
    std::optional<std::string_view> set;  // its name, as Sequences::submit() has it
    Clock::time_point deadline;           // ends between two runs; max: none
    bool each = false;                    // notices come with each token, not only at the end
  };

  DecodeLoop(RequestBudget* budget, Notify notify, void* context)
      : notify_(notify), context_(context), first_(budget), scratch_(budget) {}
  ~DecodeLoop() override = default;

  // Submits the first run. If this throws, nothing has happened. `request` and the inputs live until clear().
  void begin(ServedModel& model, const LoopRequest& request, const Terms& terms);
  // Moves the tokens there are to `tokens`, `most` of them at most.
  Look take(std::vector<int64_t>& tokens, size_t most);
  // Nobody wants further tokens. True: it is over, and no notice comes. False: one comes; then call let_go().
  bool cancel() noexcept;
  // After a notice to whoever called cancel(): true, if it is over; else another notice comes.
  bool let_go() noexcept;

  // Once it is over.
  End end() const noexcept { return end_; }
  const std::exception_ptr& problem() const noexcept { return problem_; }
  // Of the run that ended last, with the sums of all times. Valid once a token was taken, until the next take().
  RunInfo info_now();
  size_t made() const noexcept { return made_; }  // tokens, once it is over
  void clear() noexcept;
  void trim(size_t keep) noexcept {
    first_.trim(keep);
    scratch_.trim(keep);
  }

 private:
  enum class State : int8_t { kIdle, kRunning, kPaused, kOver };

  bool wanted() const noexcept override { return !cancelled_.load(std::memory_order_relaxed); }
  void ran() override;
  void finished() noexcept override;

  void prepare_first(const Terms& terms);
  void prepare();
  void set_input(size_t input, Tensor tensor);
  Tensor numbers(DType dtype, size_t rank, size_t count, const int64_t* values, int64_t from);
  void feed(const LoopPlan::Feed& feed);
  void keep_apart(Tensor& output) const;
  void submit();
  void go_on() noexcept;
  End absorb(bool& picked);
  void settle(End end, std::exception_ptr problem, bool picked) noexcept;
  void leave() noexcept;

  const Notify notify_;
  void* const context_;

  // Of the request under way: used by whoever has the state kRunning.
  ServedModel* model_ = nullptr;
  const LoopPlan* plan_ = nullptr;
  const LoopRequest* request_ = nullptr;
  std::optional<std::string_view> set_;
  SequenceParameters sequence_;
  Sequences::Step step_of_sequence_;
  DecodeBatch::RowSlot seat_;
  Clock::time_point deadline_, begun_;
  Clock::time_point told_at_;  // of the last token, before that of the beginning
  std::vector<Tensor> in_, out_;
  std::vector<int64_t> prefix_;      // all tokens so far, for a loop that gives them all
  std::chrono::nanoseconds wait_{};  // of each run, at most
  size_t given_ = 0;                 // tokens that the model has seen
  size_t step_tokens_ = 0;           // of the run under way
  int64_t picked_ = 0;               // by the run that ended last
  TensorScratch first_, scratch_;    // of all runs, of one run
  Picker picker_;
  std::chrono::nanoseconds queue_{}, compute_{};

  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kIdle;
  bool each_ = false;
  bool waiting_ SCONCE_GUARDED_BY(mutex_) = false;       // the consumer waits for a notice
  bool noticed_ SCONCE_GUARDED_BY(mutex_) = false;       // a notice is under way
  std::vector<int64_t> room_ SCONCE_GUARDED_BY(mutex_);  // a ring of tokens that were not taken
  size_t at_ SCONCE_GUARDED_BY(mutex_) = 0, held_ SCONCE_GUARDED_BY(mutex_) = 0;
  RunInfo told_ SCONCE_GUARDED_BY(mutex_);
  // Set before kOver.
  End end_ = End::kNone;
  std::exception_ptr problem_;
  size_t made_ = 0;
};

}  // namespace sconce::server
