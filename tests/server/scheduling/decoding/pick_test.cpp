#include "server/scheduling/decoding/pick.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sconce/device_memory.h"
#include "server/support/json/small_floats.h"
#include "tests/errors.h"

namespace sconce::server::scheduling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor tensor_of(std::vector<float>& values, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes = {1, static_cast<int64_t>(values.size())};
  std::vector<int64_t> strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  return Tensor::from_blob(values.data(), sizes, strides, DType::kFloat32);
}

int64_t pick(std::vector<float> values, PickOptions options = {.temperature = 0}, uint64_t seed = 0,
             uint64_t draw = 0) {
  Picker picker;
  return picker.pick(tensor_of(values), options, seed, draw);
}

// The probability of each token by the definition, in long double and with the standard library's exponential.
std::vector<long double> probabilities(const std::vector<float>& logits, const PickOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) order.resize(std::min<size_t>(order.size(), static_cast<size_t>(options.top_k)));
  std::vector<long double> result(logits.size(), 0);
  long double all = 0;
  for (const size_t i : order)
    all += result[i] = expl((static_cast<long double>(logits[i]) - logits[order[0]]) / options.temperature);
  long double sum = 0;
  for (const size_t i : order) {
    const bool keep = sum < static_cast<long double>(options.top_p) * all;
    sum += result[i];
    if (!keep) result[i] = 0;
  }
  const long double kept = std::accumulate(result.begin(), result.end(), 0.0L);
  for (long double& p : result) p /= kept;
  return result;
}

}  // namespace

TEST_CASE("pick: the largest logit, the first of several") {
  CHECK(pick({1, 5, 5, 2}) == 1);
  CHECK(pick({-kInfinity, -3, -kInfinity}) == 1);
  CHECK(pick({0.5}) == 0);
  CHECK(pick({-1, -0.0F, 0, -0.0F}) == 1);
  CHECK(pick({-5, -4, -1e-40F, -2, -1e-39F}) == 2);
  CHECK(pick({1, 5, 5, 2}, {.temperature = 2, .top_k = 1}, 3, 4) == 1);
}

TEST_CASE("pick: the last row counts, in any dtype and strides") {
  std::vector<float> values = {9, 0, 0, 0, 0, 7};
  Picker picker;
  CHECK(picker.pick(tensor_of(values, {1, 2, 3}), {.temperature = 0}, 0, 0) == 2);
  CHECK(picker.pick(tensor_of(values, {6}), {.temperature = 0}, 0, 0) == 0);
  CHECK(picker.pick(tensor_of(values, {2, 3}).as_strided(std::vector<int64_t>{1, 2}, std::vector<int64_t>{1, 3}, 2),
                    {.temperature = 0}, 0, 0) == 1);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> bits;
    for (const float value : {0.5F, -2.0F, 3.25F, 3.0F})
      bits.push_back(dtype == DType::kFloat16 ? encode_float16(value) : encode_bfloat16(value));
    const std::vector<int64_t> sizes = {1, 4}, strides = {4, 1};
    CHECK(picker.pick(Tensor::from_blob(bits.data(), sizes, strides, dtype), {.temperature = 0}, 0, 0) == 2);
  }
}

TEST_CASE("pick: what are no logits") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_from(ErrorCode::kModelFailed, [&] { pick({1, nan}); }).find("NaN") != std::string::npos);
  CHECK(error_from(ErrorCode::kModelFailed, [&] {
          pick({1, nan}, {.temperature = 1, .top_k = 1});
        }).find("NaN") != std::string::npos);
  CHECK(error_from(ErrorCode::kModelFailed, [&] { pick({1, kInfinity}); }).find("infinity") != std::string::npos);
  CHECK(error_from(ErrorCode::kModelFailed, [&] {
          pick({-kInfinity, -kInfinity});
        }).find("minus infinity") != std::string::npos);
  Picker picker;
  CHECK(error_from(ErrorCode::kModelFailed, [&] { picker.pick(Tensor(), {}, 0, 0); }).find("no tensor") !=
        std::string::npos);
  std::vector<int64_t> whole = {1, 2};
  const std::vector<int64_t> sizes = {2}, strides = {1};
  CHECK(error_from(ErrorCode::kModelFailed, [&] {
          picker.pick(Tensor::from_blob(whole.data(), sizes, strides, DType::kInt64), {}, 0, 0);
        }).find("int64") != std::string::npos);
}

TEST_CASE("pick: from ranks of the largest logits as from all of them, or with the same error") {
  CHECK(largest_needed({.temperature = 0, .top_k = 900}) == 1);
  CHECK(largest_needed({.top_k = 1}) == 1);
  CHECK(largest_needed({.top_k = 2}) == 2);
  CHECK(largest_needed({.top_k = kMaxLargest}) == kMaxLargest);
  CHECK(largest_needed({.top_k = kMaxLargest + 1}) == 0);
  CHECK(largest_needed({.top_p = 0.5}) == 0);
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 3);
  const auto one_of = [&](auto... values) { return std::array{values...}[random() % sizeof...(values)]; };
  int compared = 0, failed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> logits(one_of(1U, 2U, 5U, 127U, 128U, 129U, 130U, 1000U));
    const uint32_t kind = random() % 8;
    for (float& logit : logits) {
      logit = normal(random);
      if (kind == 1) logit = std::round(logit / 3);
      if (kind == 2) logit = one_of(0.0F, -0.0F, -1.0F);
      if (kind == 3 && random() % 4 != 0) logit = -kInfinity;
      if (kind == 4 && random() % 100 == 0) logit = std::numeric_limits<float>::quiet_NaN();
      if (kind == 5 && random() % 100 == 0) logit = kInfinity;
      if (kind == 6) logit = -kInfinity;
    }
    const PickOptions options{.temperature = one_of(0.0, 0.7, 1.0, 50.0),
                              .top_k = one_of(1, 2, 5, 40, 127, 128),
                              .top_p = one_of(1.0, 0.9, 0.1)};
    const Tensor all = tensor_of(logits);
    // A request that shares the run may need more of the largest.
    const int64_t others = one_of(1, 1, 50, 128);
    const Tensor few = last_rows(all, {.largest = std::max(largest_needed(options), others)});
    Picker picker, other;
    const auto result = [&](Picker& by, const Tensor& from) {
      try {
        return std::to_string(by.pick(from, options, 42, static_cast<uint64_t>(round)));
      } catch (const Error& error) {
        return std::string(error.what());
      }
    };
    const std::string expected = result(picker, all);
    CHECK(result(other, few) == expected);
    compared += few.dtype() == DType::kUInt64;
    failed += few.dtype() == DType::kUInt64 && expected.find("logits") != std::string::npos;
  }
  CHECK(compared > 1000);
  CHECK(failed > 100);
}

TEST_CASE("pick: options out of range") {
  CHECK(error_from([] { check_temperature(-0.1); }).find("'temperature'") != std::string::npos);
  CHECK(error_from([] { check_temperature(std::nan("")); }).find("'temperature'") != std::string::npos);
  CHECK(error_from([] { check_top_k(-1); }).find("'top_k'") != std::string::npos);
  CHECK(error_from([] { check_top_p(0); }).find("'top_p'") != std::string::npos);
  CHECK(error_from([] { check_top_p(1.01); }).find("'top_p'") != std::string::npos);
}

TEST_CASE("pick: the exponential is within two roundings of the exact one") {
  for (int i = 0; i < 20000; ++i) {
    const double x = -690.0 * i / 20000;
    const long double exact = expl(static_cast<long double>(x));
    CHECK(std::abs(static_cast<long double>(exp_of(x)) - exact) <= exact * 4.5e-16L);
  }
  CHECK(exp_of(0) == 1);
  CHECK(exp_of(-1e9) == 0);
  CHECK(exp_of(-std::numeric_limits<double>::infinity()) == 0);
}

TEST_CASE("pick: the same on every machine") {
  // Written down, not computed: another result means that clients' seeds give other tokens than before.
  CHECK(uniform(0, 0) == 0x1.4e0dba5e9a32fp-1);
  const std::vector<float> logits = {0.1F, 1.5F, -2.0F, 0.7F, 3.0F, 2.9F, -1.0F, 0.0F};
  std::vector<int64_t> tokens;
  for (uint64_t draw = 0; draw < 16; ++draw) tokens.push_back(pick(logits, {.temperature = 1.5}, 42, draw));
  CHECK(tokens == std::vector<int64_t>{4, 7, 4, 1, 5, 1, 3, 5, 1, 5, 5, 1, 3, 4, 5, 5});
}

TEST_CASE("pick: tokens come as often as their probabilities say") {
  const std::vector<float> logits = {0.3F, 2.0F, -1.0F, 2.0F, 0.9F, -0.5F, 1.4F, -kInfinity, 1.1F, 0.0F};
  const PickOptions cases[] = {{},
                               {.temperature = 0.5},
                               {.temperature = 3},
                               {.top_k = 4},
                               {.top_p = 0.6},
                               {.temperature = 1.7, .top_k = 7, .top_p = 0.8},
                               {.top_k = 3, .top_p = 0.5},
                               {.top_p = 1e-9},
                               {.top_k = 100}};
  constexpr int kDraws = 40000;
  for (const PickOptions& options : cases) {
    CAPTURE(options.temperature);
    CAPTURE(options.top_k);
    CAPTURE(options.top_p);
    const std::vector<long double> expected = probabilities(logits, options);
    std::vector<int> seen(logits.size());
    for (int draw = 0; draw < kDraws; ++draw) ++seen[pick(logits, options, 7, static_cast<uint64_t>(draw))];
    double sum = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
      const double mean = static_cast<double>(expected[i]) * kDraws;
      if (mean == 0) {
        CHECK(seen[i] == 0);
      } else {
        sum += (seen[i] - mean) * (seen[i] - mean) / mean;
      }
    }
    CHECK(sum < 30);  // of nine degrees of freedom: one try in two thousand would be above
  }
}

TEST_CASE("pick: draws of neighbouring seeds are independent") {
  int same = 0;
  for (uint64_t draw = 0; draw < 1000; ++draw) same += (uniform(1, draw) < 0.5) == (uniform(2, draw) < 0.5);
  CHECK(same > 430);
  CHECK(same < 570);
}

}  // namespace sconce::server::scheduling
