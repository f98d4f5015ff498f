#include "src/cpu/vector/transpose_runs.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <random>
#include <vector>

using namespace sconce;

TEST_CASE("transpose_runs: every element has its place, what lies between rows is untouched") {
  std::mt19937_64 random(3);
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  for (int i = 0; i < 400; ++i) {
    const int64_t columns = pick({1, 7, 8, 9, 16, 31, 48, 64}), padded = columns + pick({0, 0, 1, 9});
    const int64_t taps = pick({1, 1, 2, 9}), inner = pick({1, 2, 7, 8, 15, 16, 17, 40, 150}), rows = taps * inner;
    const int64_t apart = padded + pick({0, 3}), tap_apart = inner * apart + pick({0, 5});
    const int64_t from_apart = rows + pick({0, 1, 64});
    std::vector<float> from(static_cast<size_t>(columns * from_apart));
    for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<float>(k + 1);
    std::vector<float> to(static_cast<size_t>(taps * tap_apart + 8), -1.0f), expected = to;
    for (int64_t k = 0; k < rows; ++k)
      for (int64_t j = 0; j < padded; ++j)
        expected[static_cast<size_t>(k % taps * tap_apart + k / taps * apart + j)] =
            j < columns ? from[static_cast<size_t>(j * from_apart + k)] : 0.0f;
    transpose_runs({from.data(), from_apart, columns, rows, taps, to.data(), tap_apart, apart, padded});
    CAPTURE(columns);
    CAPTURE(rows);
    CAPTURE(taps);
    CHECK(to == expected);
  }
}
