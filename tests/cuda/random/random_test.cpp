#include "sconce/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/device/philox.h"
#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

constexpr int64_t kCount = 200000;
const std::vector<int64_t> kSizes{kCount};

struct Moments {
  double mean = 0, variance = 0, least = 0, greatest = 0;
};
Moments moments(const Tensor& t) {
  const Numbers numbers = numbers_of(t);
  Moments m;
  m.least = m.greatest = numbers[0].real();
  for (const auto& number : numbers) {
    m.mean += number.real() / static_cast<double>(numbers.size());
    m.least = std::min(m.least, number.real());
    m.greatest = std::max(m.greatest, number.real());
  }
  for (const auto& number : numbers)
    m.variance += (number.real() - m.mean) * (number.real() - m.mean) / static_cast<double>(numbers.size());
  return m;
}
template <class F>
void check_repeats(const F& draw) {
  manual_seed(7);
  const Numbers first = numbers_of(draw()), second = numbers_of(draw());
  manual_seed(7);
  CHECK(difference(numbers_of(draw()), first, 0) == "");
  CHECK(difference(numbers_of(draw()), second, 0) == "");
  CHECK(difference(second, first, 0) != "");
}

}  // namespace

TEST_CASE("rand_generator, randn_generator, randint_generator: without one, the device's own") {
  const auto same = [](const auto& a, const auto& b) {
    manual_seed(3);
    const Numbers first = numbers_of(a());
    manual_seed(3);
    CHECK(difference(numbers_of(b()), first, 0) == "");
  };
  const Tensor like = on_device(Numbers(100), {10, 10}, DType::kFloat32);
  same([] { return rand(kSizes, DType::kFloat32, {}, kGpu, {}); },
       [] { return rand_generator(kSizes, nullptr, DType::kFloat32, {}, kGpu, {}); });
  same([] { return randn(kSizes, DType::kFloat32, {}, kGpu, {}); },
       [] { return randn_generator(kSizes, nullptr, DType::kFloat32, {}, kGpu, {}); });
  same([] { return randint(9, kSizes, DType::kInt32, {}, kGpu, {}); },
       [] { return randint_generator(9, kSizes, nullptr, DType::kInt32, {}, kGpu, {}); });
  same([&] { return rand_like(like, {}, {}, {}, {}, {}); },
       [&] { return rand_like_generator(like, nullptr, {}, {}, {}, {}, {}); });
  same([&] { return randn_like(like, {}, {}, {}, {}, {}); },
       [&] { return randn_like_generator(like, nullptr, {}, {}, {}, {}, {}); });
  same([&] { return randint_like(like, 9, {}, {}, {}, {}, {}); },
       [&] { return randint_like_low_dtype(like, 0, 9, {}, {}, {}, {}, {}); });
}

// tests/cuda/torch_cases.py compares exact bits with PyTorch.
TEST_CASE("rand: in [0, 1), evenly, the same for a seed") {
  manual_seed(1);
  const auto draw = [] { return rand(kSizes, DType::kFloat32, {}, kGpu, {}); };
  const Moments m = moments(draw());
  CHECK(m.least >= 0);
  CHECK(m.greatest < 1);
  CHECK(std::abs(m.mean - 0.5) < 0.01);
  CHECK(std::abs(m.variance - 1.0 / 12) < 0.01);
  check_repeats(draw);
}

TEST_CASE("randn: mean 0 and variance 1") {
  manual_seed(1);
  const auto draw = [] { return randn(kSizes, DType::kFloat64, {}, kGpu, {}); };
  const Moments m = moments(draw());
  CHECK(std::abs(m.mean) < 0.02);
  CHECK(std::abs(m.variance - 1) < 0.02);
  check_repeats(draw);
  check_repeats([] { return randn_like(on_device(Numbers(100), {100}, DType::kFloat16), {}, {}, {}, {}, {}); });
  check_repeats([] { return rand_like(on_device(Numbers(100), {10, 10}, DType::kFloat32), {}, {}, {}, {}, {}); });
}

TEST_CASE("randint: every number of the range, no other") {
  manual_seed(1);
  const auto draw = [] { return randint_low(-3, 4, kSizes, DType::kInt64, {}, kGpu, {}); };
  std::vector<int64_t> counts(7);
  for (const auto& number : numbers_of(draw())) {
    REQUIRE(number.real() >= -3);
    REQUIRE(number.real() < 4);
    ++counts[static_cast<size_t>(number.real() + 3)];
  }
  for (const int64_t count : counts) CHECK(std::abs(count - kCount / 7) < kCount / 70);
  check_repeats(draw);
}

TEST_CASE("randperm: every number once") {
  for (const int64_t n : {int64_t{1}, int64_t{33}, int64_t{70000}}) {
    Numbers numbers = numbers_of(randperm(n, {}, {}, kGpu, {}));
    std::sort(numbers.begin(), numbers.end(), [](auto a, auto b) { return a.real() < b.real(); });
    for (int64_t i = 0; i < n; ++i) REQUIRE(numbers[static_cast<size_t>(i)].real() == static_cast<double>(i));
  }
  check_repeats([] { return randperm(1000, {}, {}, kGpu, {}); });
}

TEST_CASE("uniform, normal_functional, exponential: their means") {
  manual_seed(1);
  const Tensor like = on_device(Numbers(kCount), kSizes, DType::kFloat32);
  CHECK(std::abs(moments(uniform(like, -2, 6, nullptr)).mean - 2) < 0.05);
  CHECK(std::abs(moments(normal_functional(like, 3, 0.5, nullptr)).mean - 3) < 0.02);
  const Moments m = moments(exponential(like, 2, nullptr));
  CHECK(m.least >= 0);
  CHECK(std::abs(m.mean - 0.5) < 0.02);
  CHECK_THROWS_AS(uniform(like, 1, 0, nullptr), Error);
}

TEST_CASE("bernoulli__float: as often as asked for") {
  manual_seed(1);
  Tensor out = on_device(Numbers(kCount), kSizes, DType::kFloat32);
  bernoulli__float(out, 0.3, nullptr);
  CHECK(std::abs(moments(out).mean - 0.3) < 0.01);
  Numbers chances(kCount);
  for (size_t i = 0; i < chances.size(); ++i) chances[i] = i % 2 == 0 ? 0.0 : 1.0;
  bernoulli__Tensor(out, on_device(chances, kSizes, DType::kFloat32), nullptr);
  CHECK(difference(out, kSizes, chances, 0) == "");
}

TEST_CASE("native_dropout: what stays is scaled") {
  manual_seed(1);
  const auto [out, mask] = native_dropout(on_device(Numbers(kCount, 3.0), kSizes, DType::kFloat32), 0.25, true);
  const Numbers kept = numbers_of(mask), values = numbers_of(out);
  int64_t count = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    REQUIRE(std::abs(values[i].real() - (kept[i] != 0.0 ? 4.0 : 0.0)) < 1e-5);
    count += kept[i] != 0.0;
  }
  CHECK(std::abs(static_cast<double>(count) / kCount - 0.75) < 0.01);
}

}  // namespace sconce::gpu
