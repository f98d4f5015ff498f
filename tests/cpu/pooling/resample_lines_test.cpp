#include "src/cpu/pooling/resample_lines.h"

#include <doctest/doctest.h>

#include <vector>

namespace sconce {

// With a scale from the caller, the neighbours of an element may lie past the end of its line.
TEST_CASE("_upsample_bicubic2d_aa: elements without neighbours are zero, and nothing past the line is read") {
  const LineWindows axis{.windows = {{0, 2}, {5, 0}}, .weights = {0.5, 0.5, 1, 1}, .width = 2};
  const std::vector<float> weights(axis.weights.begin(), axis.weights.end());
  for (const int64_t inner : {1, 3}) {
    std::vector<float> in(static_cast<size_t>(2 * inner), 4), out(static_cast<size_t>(2 * inner), -1);
    resample(in.data(), out.data(), 1, 2, inner, axis, weights, 0);
    for (int64_t x = 0; x < inner; ++x) {
      CHECK(out[static_cast<size_t>(x)] == 4);
      CHECK(out[static_cast<size_t>(inner + x)] == 0);
    }
  }
}

}  // namespace sconce
