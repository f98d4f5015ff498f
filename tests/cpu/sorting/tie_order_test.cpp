#include "src/cpu/sorting/tie_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/cpu/sorting/rank_sort.h"

using namespace sconce;

namespace {

bool by_key(TieItem a, TieItem b) { return tie_key(a) < tie_key(b); }

std::vector<TieItem> items_of(const std::vector<uint32_t>& keys) {
  std::vector<TieItem> items;
  for (size_t i = 0; i < keys.size(); ++i) items.push_back(tie_item(keys[i], static_cast<uint32_t>(i)));
  return items;
}

// Input patterns, including those on which quicksort degenerates, so that the standard library falls back to heapsort.
std::vector<std::vector<uint32_t>> patterns(size_t n) {
  std::vector<std::vector<uint32_t>> all;
  uint64_t state = n;
  const auto next = [&] {
    return static_cast<uint32_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 32);
  };
  for (uint32_t range : {1u, 2u, 10u, 1000u, 0xFFFFFFFFu}) {
    std::vector<uint32_t> keys(n);
    for (auto& k : keys) k = next() % range;
    all.push_back(keys);
  }
  std::vector<uint32_t> rising(n), falling(n), pipe(n), killer(n);
  for (size_t i = 0; i < n; ++i) {
    rising[i] = static_cast<uint32_t>(i);
    falling[i] = static_cast<uint32_t>(n - i);
    pipe[i] = static_cast<uint32_t>(std::min(i, n - i));
  }
  // The worst case for a median of three: each partition splits off only two elements.
  const size_t half = n / 2;
  for (size_t i = 0; i < half; ++i) {
    killer[i] = static_cast<uint32_t>(i % 2 ? half + i - (half % 2 ? 0 : 1) + 1 : i + 1);
    killer[half + i] = static_cast<uint32_t>(2 * (i + 1));
  }
  for (auto* p : {&rising, &falling, &pipe, &killer}) all.push_back(*p);
  return all;
}

}  // namespace

TEST_CASE("tie_sort: leaves equal keys in std::sort's order") {
  for (size_t n : {0, 1, 2, 15, 16, 17, 31, 47, 48, 49, 100, 255, 256, 257, 1000, 5000, 40000})
    for (const auto& keys : patterns(n)) {
      CAPTURE(n);
      auto want = items_of(keys);
      std::sort(want.begin(), want.end(), by_key);
      for (double density : {0.0, 100.0}) {
        auto got = items_of(keys);
        tie_sort(got.data(), static_cast<int64_t>(n), density);
        CHECK(got == want);
      }
    }
}

TEST_CASE("tie_nth_element: leaves elements in std::nth_element's order") {
  for (size_t n : {1, 2, 3, 4, 5, 16, 50, 257, 1000, 20000})
    for (const auto& keys : patterns(n))
      for (size_t nth : {size_t{0}, n / 3, n / 2, n - 1}) {
        CAPTURE(n);
        CAPTURE(nth);
        auto want = items_of(keys), got = want;
        std::nth_element(want.begin(), want.begin() + static_cast<int64_t>(nth), want.end(), by_key);
        tie_nth_element(got.data(), static_cast<int64_t>(nth), static_cast<int64_t>(n));
        CHECK(got == want);
      }
}

TEST_CASE("rank_sort: stable, any length") {
  for (size_t n = 1; n < 200; ++n)
    for (uint32_t range : {3u, 100u, 0xFFFFFFFFu}) {
      std::vector<uint32_t> keys(n + 8, 0);
      std::vector<uint64_t> wide(n + 8, 0);
      uint64_t state = n;
      for (size_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        keys[i] = static_cast<uint32_t>(state >> 32) % range;
        wide[i] = uint64_t{keys[i]} << 32 | keys[i];
      }
      std::vector<int64_t> want(n), got(n);
      for (size_t i = 0; i < n; ++i) want[i] = static_cast<int64_t>(i);
      std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
        return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
      });
      rank_sort(keys.data(), static_cast<int64_t>(n), got.data());
      CHECK(got == want);
      rank_sort(wide.data(), static_cast<int64_t>(n), got.data());
      CHECK(got == want);
    }
}
