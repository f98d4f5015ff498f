// The default random generators of CUDA devices: a seed, and how much of its Philox stream each thread of a kernel has
// been given. Matches at::CUDAGeneratorImpl, torch 2.11. Thread-safe.
#pragma once

#include <cstdint>

#include "sconce/mutex.h"

namespace sconce {

class PhiloxGenerator {
 public:
  struct State {
    uint64_t seed, offset;
  };
  // What a kernel starts from, of which each thread draws up to `count` numbers. Whoever asks next gets those behind.
  State reserve(uint64_t count) noexcept;
  void set_seed(uint64_t seed) noexcept;  // and offset 0

 private:
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_){0, 0};
};

// Of that device. Seeded from the system's entropy when first used; sconce::manual_seed seeds them all.
PhiloxGenerator& philox_generator(int device);
void seed_philox_generators(uint64_t seed);

}  // namespace sconce
