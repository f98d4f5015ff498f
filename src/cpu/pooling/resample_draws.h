// Draws: the inverse of a resized axis, for gradients: for each input coordinate, the outputs that depend on it, with
// their weights. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/tensor/spatial/resample_taps.h"

namespace sconce::cpu {

template <class T>
struct Draw {
  int64_t output;
  T weight;
};

template <class T>
class Draws {
 public:
  Draws(ResampleMode mode, const ResampledAxis& axis, bool align_corners)
      : first_(static_cast<size_t>(axis.input) + 1) {
    const size_t used = taps_of(mode);
    std::vector<Taps<T>> taps;
    for (int64_t o = 0; o < axis.output; ++o) taps.push_back(make_taps<T>(mode, axis, align_corners, o));
    for (const Taps<T>& of : taps)
      for (size_t t = 0; t < used; ++t) ++first_[static_cast<size_t>(of.at[t]) + 1];
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    draws_.resize(taps.size() * used);
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (size_t o = 0; o < taps.size(); ++o)
      for (size_t t = 0; t < used; ++t)
        draws_[next[static_cast<size_t>(taps[o].at[t])]++] = {static_cast<int64_t>(o), taps[o].weight[t]};
  }
  // In the order of the outputs.
  std::span<const Draw<T>> on(int64_t input) const noexcept {
    const size_t begin = first_[static_cast<size_t>(input)];
    return {draws_.data() + begin, first_[static_cast<size_t>(input) + 1] - begin};
  }

 private:
  std::vector<size_t> first_;
  std::vector<Draw<T>> draws_;
};

}  // namespace sconce::cpu
