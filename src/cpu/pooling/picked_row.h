// PickedRow: elements of a row at given positions, one after the other, for many rows of one length.
//
// If positions are close together, as in an enlarged row, all elements of a result vector lie within one vector of the
// row, which is loaded and permuted. Immutable, thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace sconce::cpu {

// E: 1, 2, 4, 8 or 16 bytes.
template <class E>
class PickedRow {
 public:
  // places: within [0, length), ascending.
  PickedRow(const std::vector<int64_t>& places, int64_t length) : places_(&places) {
    const auto count = static_cast<int64_t>(places.size());
    if (kBytes == 0 || count < kAtOnce || length < kAtOnce) return;
    for (int64_t to = 0; to < count; to = to + kAtOnce == count ? count : std::min(to + kAtOnce, count - kAtOnce)) {
      const int64_t from = std::min(places[static_cast<size_t>(to)], length - kAtOnce);
      Step step{from, to, {}};
      for (int64_t i = 0; i < kAtOnce; ++i) {
        const int64_t lane = places[static_cast<size_t>(to + i)] - from;
        if (lane >= kAtOnce) {
          steps_.clear();
          return;
        }
        for (int64_t unit = 0; unit < kUnits; ++unit)
          step.lanes[static_cast<size_t>(i * kUnits + unit)] = static_cast<Lane>(lane * kUnits + unit);
      }
      steps_.push_back(step);
    }
  }

  void operator()(const E* row, E* to) const noexcept {
    if (steps_.empty())
      for (const int64_t place : *places_) *to++ = row[place];
    else
      for (const Step& step : steps_) permute(row + step.from, step.lanes.data(), to + step.to);
  }

 private:
  // Four bytes are permuted in a vector of 32 bytes, single bytes in one of 16.
  static constexpr bool kWide = sizeof(E) >= 4;
  static constexpr int64_t kBytes = sizeof(E) == 16 ? 0 : kWide ? 32 : 16;
  static constexpr int64_t kAtOnce = kBytes == 0 ? 1 : kBytes / static_cast<int64_t>(sizeof(E));
  static constexpr int64_t kUnits = static_cast<int64_t>(sizeof(E)) / (kWide ? 4 : 1);
  using Lane = std::conditional_t<kWide, int32_t, int8_t>;
  struct Step {
    int64_t from, to;
    std::array<Lane, kWide ? 8 : 16> lanes;
  };

  static void permute(const E* from, const Lane* lanes, E* to) noexcept {
    if constexpr (kWide)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                                                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes))));
    else
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)),
                                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes))));
  }

  const std::vector<int64_t>* places_;
  std::vector<Step> steps_;
};

}  // namespace sconce::cpu
