// DecodeLoop: runs a model repeatedly for one request, from a prompt to its continuation (docs/generate.md). Each run
// is a request in the model's queue, so that decode loops share runs. If the state is in buffers, each run is a step of
// the loop's own sequence. The thread on which a run ends picks the token and submits the next run.
//
//   kIdle --begin--> kRunning --a run ends, room for another token--> kRunning
//                    kRunning --no room--> kPaused --take--> kRunning
//                    kRunning, kPaused --last token, error, cancel--> kOver --clear--> kIdle
//
// One consumer takes tokens while the loop runs. If take() returns kWait, `notify` is called once: at most one notice
// is pending. The object is reused from request to request. cancel(), take() and let_go() are for the consumer's
// thread.
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
#include "server/scheduling/decoding/loop_host.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/decoding/pick.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {

class DecodeLoop final : private QueuedRequest {
 public:
  using Clock = QueuedRequest::Clock;
  using Notify = void (*)(void* context) noexcept;  // on any thread
  enum class End : int8_t { kNone, kStop, kLength, kDeadline, kFailed };
  enum class Look : int8_t { kTokens, kWait, kOver };  // kOver: these are the last tokens

  struct Terms {
    std::span<const Tensor> inputs;  // of the model; inputs that the loop fills are undefined
    uint64_t priority = 0;
    std::chrono::nanoseconds timeout{};   // maximum waiting time of each run; 0: none
    const WeightSet* weights = nullptr;   // a named set, owned by the caller
    std::optional<std::string_view> set;  // its name, as in Sequences::submit()
    Clock::time_point deadline;           // checked between two runs; max: none
    bool each = false;                    // notify for each token, not only at the end
  };

  DecodeLoop(RequestBudget* budget, Notify notify, void* context)
      : notify_(notify), context_(context), first_(budget), scratch_(budget) {}
  ~DecodeLoop() override = default;

  // Submits the first run. If this throws, nothing has changed. `host`, `request` and the inputs live until clear().
  void begin(LoopHost& host, const LoopRequest& request, const Terms& terms);
  // Moves the available tokens to `tokens`, `most` at most. std::bad_alloc; then the loop keeps the tokens.
  Look take(std::vector<int64_t>& tokens, size_t most);
  // Stops the loop. True: it has ended, and no notice comes. False: a notice will come; then call let_go().
  bool cancel() noexcept;
  // After cancel(), call this on each notice. True: the loop has ended. False: another notice will come.
  bool let_go() noexcept;

  // Valid after the end.
  End end() const noexcept { return end_; }
  const std::exception_ptr& problem() const noexcept { return problem_; }
  // Of the last run, with the sums of all times. Valid once a token was taken, until the next take().
  RunInfo info_now();
  size_t made() const noexcept { return made_; }  // number of tokens, after the end
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

  // Of the current request: used by the thread that holds the state kRunning.
  LoopHost* host_ = nullptr;
  const LoopPlan* plan_ = nullptr;
  const LoopRequest* request_ = nullptr;
  std::optional<std::string_view> set_;
  SequenceParameters sequence_;
  Sequences::Step step_of_sequence_;
  DecodeBatch::RowSlot slot_;
  Clock::time_point deadline_, begun_;
  Clock::time_point told_at_;  // time of the last token; before the first one, of the start
  std::vector<Tensor> in_, out_;
  std::vector<int64_t> prefix_;      // all tokens so far, for a loop whose steps take all of them
  std::chrono::nanoseconds wait_{};  // maximum waiting time of each run
  size_t given_ = 0;                 // number of tokens that the model has seen
  size_t step_tokens_ = 0;           // number of tokens in the current run
  int64_t picked_ = 0;               // by the last run
  TensorScratch first_, scratch_;    // memory for all runs; memory for one run
  Picker picker_;
  std::chrono::nanoseconds queue_{}, compute_{};

  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kIdle;
  bool each_ = false;
  bool waiting_ SCONCE_GUARDED_BY(mutex_) = false;       // the consumer waits for a notice
  bool noticed_ SCONCE_GUARDED_BY(mutex_) = false;       // a notice is pending
  std::vector<int64_t> room_ SCONCE_GUARDED_BY(mutex_);  // a ring buffer of tokens that were not taken
  size_t at_ SCONCE_GUARDED_BY(mutex_) = 0, held_ SCONCE_GUARDED_BY(mutex_) = 0;
  RunInfo told_ SCONCE_GUARDED_BY(mutex_);
  // Set before kOver.
  End end_ = End::kNone;
  std::exception_ptr problem_;
  size_t made_ = 0;
};

}  // namespace sconce::server::scheduling
