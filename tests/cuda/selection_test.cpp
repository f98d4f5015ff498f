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

// Small whole numbers, with many that are equal.
Numbers values() { return random_whole(kRows * kColumns, 3, 0, 90); }

struct Sorted {
  Numbers values, positions;
};
Sorted sorted_rows(const Numbers& in, bool descending) {
  Sorted result;
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<int64_t> order(kColumns);
    std::iota(order.begin(), order.end(), 0);
    const auto at = [&](int64_t i) { return in[static_cast<size_t>(r * kColumns + i)].real(); };
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
    const Numbers index{2, 0, 1, 0, 2, 3, 3, 3, 0, 1, 1, 2};  // no place of a column twice
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
