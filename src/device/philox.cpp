#include "src/device/philox.h"

#include <array>
#include <random>

namespace sconce {
namespace {

// Device indices have eight bits.
std::array<PhiloxGenerator, 128>& generators() {
  static std::array<PhiloxGenerator, 128> all;
  [[maybe_unused]] static const bool seeded = [] {
    std::random_device entropy;
    for (PhiloxGenerator& generator : all) generator.set_seed(uint64_t{entropy()} << 32 | entropy());
    return true;
  }();
  return all;
}

}  // namespace

PhiloxGenerator::State PhiloxGenerator::reserve(uint64_t count) noexcept {
  const MutexLock lock(mutex_);
  const State before = state_;
  state_.offset += (count + 3) / 4 * 4;
  return before;
}

void PhiloxGenerator::set_seed(uint64_t seed) noexcept {
  const MutexLock lock(mutex_);
  state_ = {seed, 0};
}

PhiloxGenerator& philox_generator(int device) { return generators()[static_cast<size_t>(device) % 128]; }

void seed_philox_generators(uint64_t seed) {
  for (PhiloxGenerator& generator : generators()) generator.set_seed(seed);
}

}  // namespace sconce
