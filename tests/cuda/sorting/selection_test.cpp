#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

constexpr DType kDtypes[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                             DType::kInt64,   DType::kInt32,   DType::kInt16,   DType::kUInt8};
constexpr int64_t kRows = 5, kColumns = 300;

// Small integers, many of them equal.
Numbers values() { return random_whole(kRows * kColumns, 3, 0, 90); }

struct Sorted {
  Numbers values, positions;
};
Sorted sorted_rows(const Numbers& in, bool descending, int64_t columns = kColumns) {
  Sorted result;
  for (int64_t r = 0; r < static_cast<int64_t>(in.size()) / columns; ++r) {
    std::vector<int64_t> order(static_cast<size_t>(columns));
    std::iota(order.begin(), order.end(), 0);
    const auto at = [&](int64_t i) { return in[static_cast<size_t>(r * columns + i)].real(); };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return descending ? at(a) > at(b) : at(a) < at(b); });
    for (const int64_t i : order) {
      result.values.push_back(at(i));
      result.positions.push_back(static_cast<double>(i));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("sort_stable: values and where they were") {
  for (const DType dtype : kDtypes)
    for (const bool descending : {false, true}) {
      const Sorted expected = sorted_rows(values(), descending);
      const auto [sorted, positions] = sort_stable(on_device(values(), {kRows, kColumns}, dtype), true, -1, descending);
      CHECK(difference(sorted, {kRows, kColumns}, expected.values, 0) == "");
      CHECK(difference(positions, {kRows, kColumns}, expected.positions, 0) == "");
    }
}

TEST_CASE("sort_stable: rows of any length") {
  for (const int64_t columns : {1, 3, 8, 13, 32, 33, 64, 100, 129, 600, 1025, 4096, 4097, 50000})
    for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBFloat16, DType::kUInt8}) {
      const Numbers in = random_whole(3 * columns, 4, 0, 200);
      const Sorted expected = sorted_rows(in, true, columns);
      const auto [sorted, positions] = sort_stable(on_device(in, {3, columns}, dtype), true, -1, true);
      CHECK(difference(sorted, {3, columns}, expected.values, 0) == "");
      CHECK(difference(positions, {3, columns}, expected.positions, 0) == "");
    }
}

TEST_CASE("sort: NaN is the greatest, along any dimension") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = on_device({3, nan, -1, 2, 0, 7}, {3, 2}, DType::kFloat32);
  CHECK(difference(sort(x, 0, false)[0], {3, 2}, {-1, 0 + 2.0, 0, 7, 3, nan}, 0) == "");
  CHECK(difference(sort(x, 1, true)[1], {3, 2}, {1, 0, 1, 0, 1, 0}, 0) == "");
}

TEST_CASE("topk: the greatest and the least") {
  for (const DType dtype : kDtypes)
    for (const bool largest : {true, false}) {
      const Sorted all = sorted_rows(values(), largest);
      Numbers expected;
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t i = 0; i < 7; ++i) expected.push_back(all.values[static_cast<size_t>(r * kColumns + i)]);
      const auto [found, at] = topk(on_device(values(), {kRows, kColumns}, dtype), 7, -1, largest, true);
      CHECK(difference(found, {kRows, 7}, expected, 0) == "");
      const Numbers places = numbers_of(at);
      for (size_t i = 0; i < places.size(); ++i)
        CHECK(values()[i / 7 * kColumns + static_cast<size_t>(places[i].real())] == expected[i]);
    }
}

// Of equal elements, topk() must take the first. 140,000 elements are more than one block reads.
TEST_CASE("topk: as a stable sort has them, of rows of any length") {
  for (const int64_t columns : {40, 1500, 2500, 9000, 140000})
    for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBFloat16, DType::kUInt8})
      for (const bool largest : {true, false}) {
        const Numbers in = random_whole(2 * columns, 6, 0, dtype == DType::kInt64 ? 100000 : 200);
        const Sorted all = sorted_rows(rounded(in, dtype), largest, columns);
        const Tensor x = on_device(in, {2, columns}, dtype);
        for (const int64_t k : {int64_t{1}, int64_t{7}, std::min<int64_t>(columns, 1200), columns - 1}) {
          Numbers expected, places;
          for (size_t r = 0; r < 2; ++r)
            for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
              expected.push_back(all.values[r * static_cast<size_t>(columns) + i]);
              places.push_back(all.positions[r * static_cast<size_t>(columns) + i]);
            }
          const auto [found, at] = topk(x, k, -1, largest, true);
          CHECK(difference(found, {2, k}, expected, 0) == "");
          CHECK(difference(at, {2, k}, places, 0) == "");
          if (largest) continue;
          const size_t first = static_cast<size_t>(k - 1), second = static_cast<size_t>(columns) + first;
          const auto [last, place] = kthvalue(x, k, -1, false);
          CHECK(difference(last, {2}, {all.values[first], all.values[second]}, 0) == "");
          CHECK(difference(place, {2}, {all.positions[first], all.positions[second]}, 0) == "");
        }
      }
}

TEST_CASE("cumsum: of a long row, and where the greatest so far stands") {
  for (const int64_t columns : {1000, 100000}) {
    const Numbers in = random_whole(2 * columns, 5, 0, 100);
    Numbers sums(in), most(in), places(in);
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const auto i = static_cast<size_t>(r * columns + c);
        places[i] = static_cast<double>(c);
        if (c == 0) continue;
        sums[i] = sums[i - 1] + in[i];
        if (in[i].real() >= most[i - 1].real()) continue;
        most[i] = most[i - 1];
        places[i] = places[i - 1];
      }
    for (const DType dtype : {DType::kFloat64, DType::kInt64}) {
      const Tensor x = on_device(in, {2, columns}, dtype);
      CHECK(difference(cumsum(x, 1, std::nullopt), {2, columns}, sums, 0) == "");
      const auto [values, at] = cummax(x, 1);
      CHECK(difference(values, {2, columns}, most, 0) == "");
      CHECK(difference(at, {2, columns}, places, 0) == "");
    }
  }
}

TEST_CASE("nonzero: coordinates in order") {
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool, DType::kFloat16}) {
    const Numbers in = random_whole(6 * 7, 5, 0, 2);
    Numbers expected;
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] != 0.0) {
        expected.push_back(static_cast<double>(i / 7));
        expected.push_back(static_cast<double>(i % 7));
      }
    CHECK(difference(nonzero(on_device(in, {6, 7}, dtype)), {static_cast<int64_t>(expected.size() / 2), 2}, expected,
                     0) == "");
  }
}

TEST_CASE("masked_select: what the mask lets through") {
  for (const DType dtype : kDtypes) {
    const Numbers in = random_whole(60, 6, 0, 100), mask = random_whole(60, 7, 0, 2);
    Numbers expected;
    for (size_t i = 0; i < in.size(); ++i)
      if (mask[i] != 0.0) expected.push_back(in[i]);
    CHECK(difference(masked_select(on_device(in, {5, 12}, dtype), on_device(mask, {5, 12}, DType::kBool)),
                     {static_cast<int64_t>(expected.size())}, expected, 0) == "");
  }
}

TEST_CASE("index_Tensor: rows and columns, negative ones from the end") {
  for (const DType dtype : kDtypes) {
    const Numbers in = random_whole(5 * 6, 8, 0, 100);
    const Tensor rows = on_device({4, -1, 0, 2}, {4}, DType::kInt64),
                 columns = on_device({5, 0, -6, 3}, {4}, DType::kInt64);
    const Tensor* const all[] = {&rows, &columns};
    const Tensor* const* const places[] = {&all[0], &all[1]};
    const Numbers expected{in[4 * 6 + 5], in[4 * 6], in[0], in[2 * 6 + 3]};
    CHECK(difference(index_Tensor(on_device(in, {5, 6}, dtype), {places, 2}), {4}, expected, 0) == "");
  }
}

TEST_CASE("index_Tensor: an index out of bounds fails the call, not the device") {
  const Tensor x = on_device(Numbers(6), {6}, DType::kFloat32), at = on_device({1, 6}, {2}, DType::kInt64);
  const Tensor* const given = &at;
  const Tensor* const* const place = &given;
  CHECK_THROWS_AS(index_Tensor(x, {&place, 1}), Error);
  const Tensor fine = on_device({1, 5}, {2}, DType::kInt64);
  const Tensor* const other = &fine;
  const Tensor* const* const again = &other;
  CHECK(difference(index_Tensor(x, {&again, 1}), {2}, Numbers(2), 0) == "");
}

TEST_CASE("index_put: set, and added where an index comes again") {
  for (const DType dtype : kDtypes) {
    const Numbers in = random_whole(10, 8, 0, 20), more = random_whole(4, 9, 1, 20);
    const Tensor at = on_device({3, 9, 3, -7}, {4}, DType::kInt64);
    const Tensor* const given = &at;
    const Tensor* const* const place = &given;
    Numbers expected = in;
    expected[3] += more[0] + more[2] + more[3];
    expected[9] += more[1];
    CHECK(difference(index_put(on_device(in, {10}, dtype), {&place, 1}, on_device(more, {4}, dtype), true), {10},
                     expected, 0) == "");
    const Tensor apart = on_device({1, 2}, {2}, DType::kInt64);
    const Tensor* const one = &apart;
    const Tensor* const* const there = &one;
    expected = in;
    expected[1] = more[0];
    expected[2] = more[1];
    CHECK(
        difference(index_put(on_device(in, {10}, dtype), {&there, 1}, on_device({more[0], more[1]}, {2}, dtype), false),
                   {10}, expected, 0) == "");
  }
}

TEST_CASE("scatter_src_out: each value where its index says") {
  for (const DType dtype : kDtypes) {
    const Numbers in = random_whole(12, 1, 0, 50), src = random_whole(12, 2, 50, 90);
    const Numbers index{2, 0, 1, 0, 2, 3, 3, 3, 0, 1, 1, 2};  // no index twice in a column
    Numbers expected = in;
    Numbers filled = in;
    for (size_t i = 0; i < 12; ++i) {
      const size_t to = static_cast<size_t>(index[i].real()) * 3 + i % 3;
      expected[to] = src[i];
      filled[to] = 7;
    }
    Tensor out = on_device(Numbers(12), {4, 3}, dtype);
    const Tensor self = on_device(in, {4, 3}, dtype), at = on_device(index, {4, 3}, DType::kInt64);
    scatter_src_out(out, self, 0, at, on_device(src, {4, 3}, dtype));
    CHECK(difference(out, {4, 3}, expected, 0) == "");
    scatter_value_out(out, self, 0, at, 7);
    CHECK(difference(out, {4, 3}, filled, 0) == "");
  }
}

TEST_CASE("scatter_reduce_two_out: sums, extremes and products") {
  const Numbers in{1, 2, 3, 4}, src{5, 6, 7, 8, 9}, index{0, 0, 2, 3, 2};
  const Tensor self = on_device(in, {4}, DType::kFloat32), at = on_device(index, {5}, DType::kInt64),
               from = on_device(src, {5}, DType::kFloat32);
  Tensor out = on_device(Numbers(4), {4}, DType::kFloat32);
  const auto reduce = [&](const char* how, bool with_self) {
    scatter_reduce_two_out(out, self, 0, at, from, how, with_self);
    return numbers_of(out);
  };
  CHECK(difference(reduce("sum", true), {12, 2, 19, 12}, 0) == "");
  CHECK(difference(reduce("amax", true), {6, 2, 9, 8}, 0) == "");
  CHECK(difference(reduce("amin", true), {1, 2, 3, 4}, 0) == "");
  CHECK(difference(reduce("prod", true), {30, 2, 189, 32}, 0) == "");
  CHECK(difference(reduce("mean", false), {5.5, 2, 8, 8}, 0) == "");
}

}  // namespace sconce::gpu
