// A model that a test scripts, and a clock that it sets, for state machines of scheduling on one thread.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/scheduling/sequence_host.h"
#include "server/support/timer_queue.h"

namespace sconce::server::scheduling {

// The time for a TimerQueue. It moves in pass() only.
class StillTime {
 public:
  static TimerQueue::Clock::time_point now() noexcept { return now_; }
  static void pass(std::chrono::nanoseconds time) noexcept { now_ += time; }

 private:
  inline static TimerQueue::Clock::time_point now_{std::chrono::hours(1000)};
};

// Moves the time, and fires the alarms that are due by then.
inline void pass(TimerQueue& clock, std::chrono::nanoseconds time) {
  StillTime::pass(time);
  clock.poll();
}

// A model with slots for sequences. It runs nothing by itself: a test runs what was submitted.
class ScriptedModel final : public SequenceHost {
 public:
  explicit ScriptedModel(int64_t slots, size_t replicas = 1) : free(replicas, slots) {}

  std::shared_ptr<Sequence> make_sequence(bool rows) override {
    size_t best = 0;
    for (size_t i = 1; i < free.size(); ++i)
      if (free[i] > free[best]) best = i;
    SCONCE_CHECK(free[best] > 0, kQueueFull, "all slots are taken");
    rows_asked = rows;
    return std::make_shared<Slot>(*this, best);
  }
  void submit(RunRequest& run) override { runs.push_back(&run); }
  uint64_t weight_version() const noexcept override { return active; }

  // Runs the first request, as a replica thread does. model: called with the request in place of the model.
  template <class F>
  void run_next(F&& model) {
    REQUIRE_FALSE(runs.empty());
    RunRequest& run = *std::exchange(runs.front(), nullptr);
    runs.pop_front();
    try {
      if (run.starting()) {
        run.preparing();
        run.info.weight_version = active;
        model(run);
        run.ran();
      }
    } catch (...) {
      run.error = std::current_exception();
    }
    run.finished();
  }

  std::vector<int64_t> free;  // slots, by replica
  std::deque<RunRequest*> runs;
  uint64_t active = 1;
  bool rows_asked = false;  // by the last sequence

 private:
  class Slot final : public Sequence {
   public:
    Slot(ScriptedModel& model, size_t replica) : model_(model), replica_(replica) { --model_.free[replica]; }
    ~Slot() override { ++model_.free[replica_]; }
    size_t replica() const noexcept override { return replica_; }

   private:
    ScriptedModel& model_;
    const size_t replica_;
  };
};

}  // namespace sconce::server::scheduling
