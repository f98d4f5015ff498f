// A batcher without lanes, for tests that perform its runs themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>

#include "sconce/check.h"
#include "server/scheduling/batching/batcher.h"
#include "tests/server/queued_requests.h"

namespace sconce::server::scheduling {

// Doubles each element of a run's input.
inline void double_all(RunRequest& run) {
  Tensor output = Tensor::empty(run.inputs[0].sizes(), DType::kFloat32);
  for (int64_t i = 0; i < output.numel(); ++i) output.data_as<float>()[i] = 2 * run.inputs[0].data_as<float>()[i];
  run.outputs[0] = std::move(output);
}

// Performs a launched run, as a lane does.
template <class F>
void as_lane(RunRequest& run, F&& model) {
  try {
    if (run.starting()) {
      run.preparing();
      model();
      run.ran();
    }
  } catch (...) {
    run.error = std::current_exception();
  }
  run.finished();
}

inline bool done(const auto&... requests) { return (requests.done() && ...); }

// A model without lanes: the test performs the runs that the batcher launches.
struct Puppet {
  explicit Puppet(BatchPolicy policy, int64_t replicas = 1)
      : batcher(
            "puppet", std::move(policy), [this](RunRequest& run) { launched.push_back(&run); }, clock, place,
            replicas) {}

  // Performs the first launched run and returns its number of rows; 0 if none was launched.
  int64_t run_next() {
    RunRequest& run = *launched.front();
    launched.pop_front();
    int64_t rows = 0;
    as_lane(run, [&] {
      rows = run.inputs[0].size(0);
      inputs_of_run = run.inputs[0].data();
      ++runs;
      if (when_running) when_running();
      if (fail_if && fail_if(run)) SCONCE_FAIL(kModelFailed, "told to fail");
      run.info.weight_version = ++weight_version;
      double_all(run);
    });
    return rows;
  }
  void submit(auto&... requests) { (batcher.submit(requests), ...); }

  TimerQueue clock;
  InlinePolicy place{std::chrono::nanoseconds(0), true};
  std::deque<RunRequest*> launched;
  const void* inputs_of_run = nullptr;
  int runs = 0;
  uint64_t weight_version = 0;
  std::function<void()> when_running;
  std::function<bool(RunRequest&)> fail_if;
  Batcher batcher;  // last, because it must be destroyed first
};

}  // namespace sconce::server::scheduling
