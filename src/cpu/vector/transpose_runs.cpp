#include "src/cpu/vector/transpose_runs.h"

#include <algorithm>

#include "src/cpu/vector/transpose_blocks.h"

namespace sconce {
namespace {

constexpr int64_t kLine = 16;    // elements
constexpr int64_t kAhead = 128;  // elements of a run that are on their way while others are moved

}  // namespace

void transpose_runs(const RunsToPanel& p) noexcept {
  int64_t i = 0, t = 0;
  for (int64_t k = 0; k < p.rows; k += kLine) {
    const int64_t count = std::min(kLine, p.rows - k);
    float* row[kLine];
    for (int64_t r = 0; r < count; ++r) {
      row[r] = p.to + t * p.tap_apart + i * p.apart;
      if (++t == p.taps) {
        t = 0;
        ++i;
      }
    }
    int64_t j = 0;
    for (; j + 8 <= p.columns; j += 8) {
      const float* const from = p.from + j * p.from_apart + k;
      const auto column = [&](int64_t r) {
        return [=, &p](int64_t c) { return reinterpret_cast<const char*>(from + c * p.from_apart + r); };
      };
      int64_t r = 0;
      for (; r + 8 <= count; r += 8) transpose8(column(r), [&](int64_t q) { return row[r + q] + j; });
      for (; r < count; ++r)
        for (int64_t c = 0; c < 8; ++c) row[r][j + c] = from[c * p.from_apart + r];
      if (k + kAhead < p.rows)
        for (int64_t c = 0; c < 8; ++c) __builtin_prefetch(from + c * p.from_apart + kAhead);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = j; c < p.columns; ++c) row[r][c] = p.from[c * p.from_apart + k + r];
      if (p.columns < p.padded) std::fill(row[r] + p.columns, row[r] + p.padded, 0.0f);
    }
  }
}

}  // namespace sconce
