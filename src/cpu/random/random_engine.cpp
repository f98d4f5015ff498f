#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "sconce/random.h"
#include "src/cpu/random/random.h"
#include "src/device/dummy_run.h"
#include "src/device/philox.h"

namespace sconce {

void Generator::reseed(uint64_t seed) noexcept {
  uint32_t word = static_cast<uint32_t>(seed);  // the upper half is not used, as in PyTorch
  state_[0] = word;
  for (uint32_t i = 1; i < kWords; ++i) state_[i] = word = 1812433253u * (word ^ word >> 30) + i;
  next_ = kWords;
  cached_normal_.reset();
}

void Generator::regenerate() noexcept {
  uint32_t* const s = state_;
  const auto twist = [](uint32_t a, uint32_t b) {
    return ((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1 ^ ((0u - (b & 1u)) & 0x9908b0dfu);
  };
  constexpr size_t kHead = kWords - kShift;
  for (size_t i = 0; i < kHead; ++i) s[i] = s[i + kShift] ^ twist(s[i], s[i + 1]);
  for (size_t i = kHead; i < kWords - 1; ++i) s[i] = s[i - kHead] ^ twist(s[i], s[i + 1]);
  s[kWords - 1] = s[kShift - 1] ^ twist(s[kWords - 1], s[0]);
  for (size_t i = 0; i < kWords; ++i) {
    uint32_t y = s[i];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    words_[i] = y ^ y >> 18;
  }
  next_ = 0;
}

void Generator::draw(uint32_t* out, size_t n) noexcept {
  mutex_.assert_held();
  while (n) {
    if (next_ == kWords) regenerate();
    const size_t take = std::min(n, kWords - next_);
    std::memcpy(out, words_ + next_, take * sizeof(uint32_t));
    next_ += take;
    out += take;
    n -= take;
  }
}

double Generator::normal() noexcept {
  mutex_.assert_held();
  if (cached_normal_) {
    const double value = *cached_normal_;
    cached_normal_.reset();
    return value;
  }
  constexpr double kScale = 1.0 / (uint64_t{1} << 53);
  const auto uniform = [&] { return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * kScale; };
  const double u1 = uniform();
  const double u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * M_PI * u1;
  cached_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

Generator& default_generator() {
  refuse_in_dummy_run("it draws random numbers");
  static Generator generator([] {
    std::random_device entropy;
    return uint64_t{entropy()} << 32 | entropy();
  }());
  return generator;
}

void manual_seed(uint64_t seed) {
  default_generator().set_seed(seed);
  seed_philox_generators(seed);
}

}  // namespace sconce
