#include "sconce/difference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "sconce/float_types.h"
#include "sconce/tensor_files.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;

namespace {

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
Difference between(DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  Difference difference;
  add_difference(difference, dtype, bytes(a), bytes(b));
  return difference;
}

}  // namespace

TEST_CASE("a difference says how many, how far and where") {
  const Difference d = between<float>(DType::kFloat32, {3, 4, 0, -1}, {3, 1, 0, -1.5f});
  CHECK(d.elements == 4);
  CHECK(d.changed == 2);
  CHECK(d.largest == 3);
  CHECK(d.largest_at == 1);
  CHECK(d.mean() == doctest::Approx(3.5 / 4));
  CHECK(d.relative() == doctest::Approx(std::sqrt(9.25 / 26)));
  CHECK(d.cosine() == doctest::Approx((9 + 4 + 1.5) / (std::sqrt(26.0) * std::sqrt(9 + 1 + 2.25))));
}

TEST_CASE("a difference of zeros") {
  const Difference none = between<float>(DType::kFloat32, {}, {});
  CHECK(none.mean() == 0);
  CHECK(none.relative() == 0);
  CHECK(none.cosine() == 1);
  const Difference from_zero = between<float>(DType::kFloat32, {0, -0.0f}, {-0.0f, 2});
  CHECK(from_zero.changed == 1);
  CHECK(std::isinf(from_zero.relative()));
  CHECK(from_zero.cosine() == 0);
}

TEST_CASE("elements that are not finite are counted, and left out of the sums") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Difference d = between<float>(DType::kFloat32, {nan, 1, inf, inf, 5}, {nan, nan, inf, -inf, 6});
  CHECK(d.changed == 3);
  CHECK(d.not_finite_a == 3);
  CHECK(d.not_finite_b == 4);
  CHECK(d.finite == 1);
  CHECK(d.largest == 1);
  CHECK(d.largest_at == 4);
  CHECK(d.mean() == 1);
}

TEST_CASE("integers that doubles do not tell apart differ") {
  const int64_t large = (int64_t{1} << 53) + 1;
  CHECK(between<int64_t>(DType::kInt64, {large}, {large - 1}).changed == 1);
  CHECK(between<uint64_t>(DType::kUInt64, {UINT64_MAX}, {UINT64_MAX}).changed == 0);
  CHECK(between<uint8_t>(DType::kBool, {1, 1, 0}, {2, 0, 0}).changed == 1);  // 2 is true
}

TEST_CASE("every dtype is compared by its values") {
  const auto half = [](float value) { return Half(value); };
  CHECK(between<Half>(DType::kFloat16, {half(1), half(2)}, {half(1.5), half(2)}).largest == 0.5);
  CHECK(between<BFloat16>(DType::kBFloat16, {BFloat16(1.0f)}, {BFloat16(-1.0f)}).largest == 2);
  CHECK(between<Float8E4M3FN>(DType::kFloat8E4M3FN, {Float8E4M3FN(1.0f)}, {Float8E4M3FN(448.0f)}).largest == 447);
  CHECK(between<Float8E5M2>(DType::kFloat8E5M2, {Float8E5M2(1.0f)}, {Float8E5M2(-2.0f)}).largest == 3);
  CHECK(between<Float8E8M0FNU>(DType::kFloat8E8M0FNU, {Float8E8M0FNU(1.0f)}, {Float8E8M0FNU(4.0f)}).largest == 3);
  CHECK(between<double>(DType::kComplex128, {1, 2}, {1, 5}).largest_at == 1);  // the imaginary part
  const Difference four = between<uint8_t>(DType::kFloat4E2M1FNx2, {0x21}, {0xA1});
  CHECK(four.elements == 2);
  CHECK(four.changed == 1);
  CHECK(four.largest == 2);  // 1 and -1, in the upper half
}

TEST_CASE("pieces add up to the whole") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = normal(random);
    b[i] = a[i] + 0.01f * normal(random);
  }
  const Difference whole = between(DType::kFloat32, a, b);
  Difference pieces;
  for (size_t at = 0; at < a.size(); at += 125)
    add_difference(pieces, DType::kFloat32, bytes(a).subspan(4 * at, 500), bytes(b).subspan(4 * at, 500));
  CHECK(pieces.largest == whole.largest);
  CHECK(pieces.largest_at == whole.largest_at);
  CHECK(pieces.changed == whole.changed);
  CHECK(pieces.cosine() == doctest::Approx(whole.cosine()));
}

TEST_CASE("tensors of different sizes are not compared") {
  Difference d;
  const std::vector<float> one{1}, two{1, 2};
  CHECK(contains(error_from([&] { add_difference(d, DType::kFloat32, bytes(one), bytes(two)); }), "4 and 8 bytes"));
}

TEST_CASE("two files are compared by the names of their tensors, whatever their formats") {
  const TempFolder folder;
  const auto tensor = [](std::vector<int64_t> sizes, std::vector<float> values) {
    Tensor result = Tensor::empty(sizes, DType::kFloat32);
    std::memcpy(result.data(), values.data(), values.size() * sizeof(float));
    return result;
  };
  const std::vector<NamedTensor> a{{"same", tensor({2}, {1, 2})},
                                   {"gone", tensor({1}, {1})},
                                   {"moved", tensor({2, 2}, {1, 2, 3, 4})},
                                   {"other", tensor({3}, {1, 2, 3})}};
  const std::vector<NamedTensor> b{{"other", tensor({1, 3}, {1, 2, 3})},
                                   {"moved", tensor({2, 2}, {1, 2, 3, 8})},
                                   {"same", tensor({2}, {1, 2})},
                                   {"new", tensor({1}, {0})}};
  write_safetensors(folder / "a.safetensors", a);
  write_npz(folder / "b.npz", b);
  const auto from = WeightFile::open(folder / "a.safetensors");
  const auto to = WeightFile::open(folder / "b.npz");
  const std::vector<TensorDifference> all = compare_weights(*from, *to);
  using Kind = TensorDifference::Kind;
  REQUIRE(all.size() == 5);
  CHECK(all[0].name == "gone");
  CHECK(all[0].kind == Kind::kOnlyA);
  CHECK(all[1].name == "moved");
  CHECK(all[1].kind == Kind::kChanged);
  CHECK(all[1].difference.largest == 4);
  CHECK(all[1].difference.largest_at == 3);
  CHECK(all[2].name == "new");
  CHECK(all[2].kind == Kind::kOnlyB);
  CHECK(all[3].name == "other");
  CHECK(all[3].kind == Kind::kReshaped);
  CHECK(all[4].kind == Kind::kSame);
}
