// How tests steer and watch a fake model: fake_model_knobs() of the loaded library gives the address of its own knobs.
// Each can also be set before the library is loaded, by an environment variable: FAKE_MODEL_FAIL_IN_RUNS=3.
// FAKE_MODEL_HOLD=FILE has runs wait while FILE is there. A number in FILE has only those runs wait whose first row has
// that number in its second column.
#pragma once

#include <atomic>
#include <cstdint>

enum class FakeFailure : int64_t {
  kException,  // throws std::runtime_error
  kCheck,      // aoti_torch_check fails
  kShim,       // a function of the host fails, and the model checks its result
  kUnchecked,  // the same, but the model ignores it and returns success with a null output
  kUnknown,    // throws something that is no std::exception
  kEnd,        // ends the process by SIGABRT
  kHang,       // never returns
  kAccess,     // writes to an address that is not mapped
  kOverflow,   // calls itself until the stack ends
  kLibrary,    // has a function of the C library write to such an address
  kLoss,       // a check fails below a frame that blocks exceptions and owns kFakeLoss bytes
};

inline constexpr int64_t kFakeLoss = int64_t{64} << 20;  // never written, so hardly any of it is resident

struct FakeKnobs {
  // 0: never; 1: the next one fails; n: the nth from now on, once.
  std::atomic<int64_t> fail_in_runs{0}, fail_in_creates{0}, fail_in_folds{0}, fail_in_updates{0};
  std::atomic<FakeFailure> fail_kind{FakeFailure::kException};
  std::atomic<int64_t> sleep_us{0};  // in every run

  std::atomic<bool> write_input{false};   // every run adds 1 to the first element of its input
  std::atomic<bool> return_input{false};  // every run returns its input instead of a result

  // Observed.
  std::atomic<int64_t> creates{0}, runs{0}, folds{0}, updates{0};
  std::atomic<int64_t> live_containers{0};
  std::atomic<int64_t> live_tensors{0};  // handles that the model has now, of its own making or stolen
  std::atomic<int64_t> running{0}, most_running{0};
  std::atomic<int64_t> fold_cpus{0}, fold_threads{0};  // in the last fold: cores it might use, size of OpenMP's teams
  std::atomic<const void*> constants[4]{};             // data that the last run used: w, b, state, folded w
};

extern "C" {
using FakeKnobsFunction = FakeKnobs*();  // "fake_model_knobs"
}

// An input whose first element is one of these has the run behave as if the knob were set: for tests that only reach
// the model through a server. The failure is fail_kind's if that ends a run or the process by a signal.
inline constexpr float kFakeFailInput = -1e30F;
inline constexpr float kFakeSleepInput = -2e30F;  // sleeps 50 ms
