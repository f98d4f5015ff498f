#include "src/tensor/last_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "sconce/float_types.h"
#include "tests/errors.h"

using namespace sconce;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Tensor tensor_of(std::vector<float>& values, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  return Tensor::from_blob(values.data(), sizes, strides, DType::kFloat32);
}

// Of one row: "value index" of each rank.
std::vector<std::pair<float, uint32_t>> largest(std::vector<float> values, int64_t count) {
  const Tensor ranks = last_rows(tensor_of(values, {static_cast<int64_t>(values.size())}), {.largest = count});
  REQUIRE(ranks.dtype() == DType::kUInt64);
  REQUIRE(ranks.numel() == count);
  std::vector<std::pair<float, uint32_t>> found;
  for (int64_t i = 0; i < count; ++i) {
    const Ranked one = ranked(ranks.data_as<uint64_t>()[i]);
    found.emplace_back(one.value, one.index);
  }
  return found;
}
using Found = std::vector<std::pair<float, uint32_t>>;

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
}

}  // namespace

TEST_CASE("last rows: ranks order numbers as they are picked, and give them back") {
  const std::vector<float> ascending = {-kInfinity, -3e38F, -1, -1e-40F, 0,         1e-45F,
                                        1e-40F,     1,      2,  3e38F,   kInfinity, kNan};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      CHECK((rank_of(ascending[i], 7) < rank_of(ascending[j], 7)) == (i < j));
      CHECK((rank_of(ascending[i], 9) < rank_of(ascending[j], 2)) == (i <= j));  // of equal ones the lower index
    }
    for (const uint32_t index : {0u, 1u, 4'000'000'000u, 0xfffffffeu}) {
      const Ranked back = ranked(rank_of(ascending[i], index));
      CHECK((back.value == ascending[i] || std::isnan(ascending[i])));
      CHECK(std::isnan(back.value) == std::isnan(ascending[i]));
      CHECK(back.index == index);
      CHECK(rank_of(ascending[i], index) != 0);
    }
  }
  CHECK(rank_of(-0.0F, 3) == rank_of(0.0F, 3));
  CHECK(std::bit_cast<uint32_t>(ranked(rank_of(-0.0F, 3)).value) == 0);
  CHECK(rank_of(-kNan, 3) == rank_of(kNan, 3));
}

TEST_CASE("last rows: the largest numbers, of equal ones the first") {
  CHECK(largest({1, 5, 5, 2}, 1) == Found{{5, 1}});
  CHECK(largest({1, 5, 5, 2}, 3) == Found{{5, 1}, {5, 2}, {2, 3}});
  CHECK(largest({-1, -0.0F, 0, -0.0F, -2}, 4) == Found{{0, 1}, {0, 2}, {0, 3}, {-1, 0}});
  CHECK(largest({-kInfinity, -3, -kInfinity, -4}, 3) == Found{{-3, 1}, {-4, 3}, {-kInfinity, 0}});
  CHECK(largest({2, kInfinity, 3}, 2) == Found{{kInfinity, 1}, {3, 2}});
  const Found found = largest({2, kInfinity, kNan, 3, kNan}, 3);
  CHECK((std::isnan(found[0].first) && std::isnan(found[1].first)));
  CHECK((found[0].second == 2 && found[1].second == 4 && found[2].second == 1));
}

TEST_CASE("last rows: of each part the row at the end of all dimensions, in any strides") {
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor whole = tensor_of(values, {4, 2, 3});
  Tensor rows = last_rows(whole, {});
  CHECK(std::vector<int64_t>(rows.sizes().begin(), rows.sizes().end()) == std::vector<int64_t>{1, 3});
  CHECK(floats_of(rows) == std::vector<float>{21, 22, 23});
  CHECK(floats_of(last_rows(whole, {.parts = 2})) == std::vector<float>{9, 10, 11, 21, 22, 23});
  CHECK(floats_of(last_rows(whole, {.parts = 4})) == std::vector<float>{3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23});
  const std::vector<int64_t> sizes = {2, 2, 4}, strides = {1, 2, 6};  // the last dimension is not the innermost
  const Tensor turned = whole.as_strided(sizes, strides, 1);
  CHECK(floats_of(last_rows(turned, {.parts = 2})) == std::vector<float>{3, 9, 15, 21, 4, 10, 16, 22});
  const Tensor ranks = last_rows(turned, {.parts = 2, .largest = 1});
  CHECK(ranks.data_as<uint64_t>()[0] == rank_of(21, 3));
  CHECK(ranks.data_as<uint64_t>()[1] == rank_of(22, 3));
}

TEST_CASE("last rows: rows that are not longer than what is wanted come as they are") {
  std::vector<float> values = {3, 1, 2};
  CHECK(last_rows(tensor_of(values, {1, 3}), {.largest = 2}).dtype() == DType::kUInt64);
  for (const int64_t count : {3, 4, 128})
    CHECK(floats_of(last_rows(tensor_of(values, {1, 3}), {.largest = count})) == values);
}

TEST_CASE("last rows: half and bfloat16 keep their dtype, and their ranks are those of the numbers") {
  std::vector<uint16_t> half = {Half(1).bits, Half(-2).bits, Half(3).bits},
                        brain = {BFloat16(1).bits, BFloat16(-2).bits, BFloat16(3).bits};
  const std::vector<int64_t> sizes = {1, 3}, strides = {3, 1};
  for (const bool is_half : {true, false}) {
    const DType dtype = is_half ? DType::kFloat16 : DType::kBFloat16;
    std::vector<uint16_t>& bits = is_half ? half : brain;
    const Tensor tensor = Tensor::from_blob(bits.data(), sizes, strides, dtype);
    const Tensor rows = last_rows(tensor, {}), ranks = last_rows(tensor, {.largest = 2});
    CHECK(rows.dtype() == dtype);
    CHECK(std::equal(bits.begin(), bits.end(), rows.data_as<uint16_t>()));
    CHECK(ranks.data_as<uint64_t>()[0] == rank_of(3, 2));
    CHECK(ranks.data_as<uint64_t>()[1] == rank_of(1, 0));
  }
}

TEST_CASE("last rows: what a tensor lacks is said") {
  std::vector<float> values(6);
  const auto why = [&](const Tensor& tensor, const LastRows& wanted) {
    CHECK_FALSE(has_last_rows(tensor, wanted));
    return error_from(ErrorCode::kInvalidArgument, [&] { last_rows(tensor, wanted); });
  };
  const Tensor whole = tensor_of(values, {2, 3});
  CHECK(why({}, {}) == "last rows of no tensor, 1 parts, 0 largest: there are no rows");
  CHECK(why(Tensor::empty(std::vector<int64_t>{0, 3}, DType::kFloat32), {}).find("no rows") != std::string::npos);
  CHECK(why(Tensor::empty(std::vector<int64_t>{3}, DType::kInt64), {}).find("float32") != std::string::npos);
  CHECK(why(whole, {.parts = 0}).find("equal parts") != std::string::npos);
  CHECK(why(whole, {.parts = 3}).find("equal parts") != std::string::npos);
  CHECK(why(tensor_of(values, {6}), {.parts = 2}).find("equal parts") != std::string::npos);
  CHECK(why(whole, {.largest = -1}).find("largest") != std::string::npos);
  CHECK(why(whole, {.largest = kMaxLargest + 1}).find("largest") != std::string::npos);
  CHECK(has_last_rows(whole, {.parts = 2, .largest = kMaxLargest}));
}
