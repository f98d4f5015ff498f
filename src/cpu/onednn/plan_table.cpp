#include "src/cpu/onednn/plan_table.h"

namespace sconce {

uint64_t hash_words(std::span<const int64_t> words) noexcept {
  // Two chains, since a multiplication takes longer than it keeps the multiplier busy.
  uint64_t a = 0x9E3779B97F4A7C15, b = 0xC2B2AE3D27D4EB4F;
  for (size_t i = 0; i < words.size(); i += 2) {
    a = (a ^ static_cast<uint64_t>(words[i])) * 0xFF51AFD7ED558CCD;
    b = (b ^ static_cast<uint64_t>(i + 1 < words.size() ? words[i + 1] : 0)) * 0xC4CEB9FE1A85EC53;
    a ^= a >> 32;
    b ^= b >> 29;
  }
  a ^= b * 0x9E3779B97F4A7C15;
  return a ^ a >> 31;
}

}  // namespace sconce
