// The default random generators of CUDA devices: a seed, and the count of numbers of its Philox stream that each
// thread of a kernel has received. Matches at::CUDAGeneratorImpl of torch 2.11. Thread-safe.
#pragma once

#include <cstdint>

#include "sconce/mutex.h"

namespace sconce {

class PhiloxGenerator {
 public:
  struct State {
    uint64_t seed, offset;
  };
  // Returns the state for a kernel whose threads each draw up to `count` numbers. The next call returns the state
  // after those numbers.
  State reserve(uint64_t count) noexcept {
    const MutexLock lock(mutex_);
    const State before = state_;
    state_.offset += (count + 3) / 4 * 4;
    return before;
  }
  void set_seed(uint64_t seed) noexcept {  // and offset 0
    const MutexLock lock(mutex_);
    state_ = {seed, 0};
  }

 private:
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_){0, 0};
};

// The generator of that device, seeded from the system's entropy at first use; sconce::manual_seed seeds all of them.
PhiloxGenerator& philox_generator(int device);
void seed_philox_generators(uint64_t seed);

}  // namespace sconce
