// Hashes that are the same in every process and on every machine. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace sconce {

// 2^64 over the golden ratio: its multiples are spread evenly over 64 bits.
constexpr uint64_t kGoldenStep = 0x9e3779b97f4a7c15;

// splitmix64's finaliser: inputs that differ in a few bits give outputs that look unrelated.
constexpr uint64_t mixed_bits(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The output of splitmix64 for this state. The next state is x + kGoldenStep.
constexpr uint64_t splitmix64(uint64_t x) noexcept { return mixed_bits(x + kGoldenStep); }

constexpr uint64_t kFnvStart = 0xcbf29ce484222325;

// FNV-1a. `hash` is the hash of the preceding text.
constexpr uint64_t fnv1a(std::string_view text, uint64_t hash = kFnvStart) noexcept {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace sconce
