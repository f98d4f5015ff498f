#include "server/weights/validation/answer_difference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sconce/float_types.h"
#include "tests/errors.h"

namespace sconce::server::weights {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

template <class T>
Tensor tensor(const std::vector<int64_t>& sizes, const std::vector<T>& values, DType dtype) {
  Tensor result = Tensor::empty(sizes, dtype);
  REQUIRE(result.bytes() == values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(result.data(), values.data(), values.size() * sizeof(T));
  return result;
}
Tensor floats(const std::vector<int64_t>& sizes, const std::vector<float>& values) {
  return tensor(sizes, values, DType::kFloat32);
}

OutputDifference compare(const Tensor& a, const Tensor& b, bool batched = false) {
  std::vector<OutputDifference> result(1);
  add_answers({&a, 1}, {&b, 1}, batched, result);
  return result[0];
}

}  // namespace

TEST_CASE("answer difference: sums over requests are those of a double loop") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<OutputDifference> result(1);
  double largest = 0, sum = 0, products = 0, squares_a = 0, squares_b = 0;
  uint64_t elements = 0, rows = 0, other_rows = 0, other_answers = 0;
  for (int64_t request = 1; request <= 20; ++request) {
    std::vector<float> a, b;
    for (int64_t i = 0; i < request * 5; ++i) {
      a.push_back(normal(random));
      b.push_back(a.back() + normal(random) * 0.3F);
    }
    uint64_t others = 0;
    for (int64_t row = 0; row < request; ++row) {
      int64_t best_a = 0, best_b = 0;
      for (int64_t c = 0; c < 5; ++c) {
        const auto i = static_cast<size_t>(row * 5 + c);
        const double x = a[i], y = b[i];
        largest = std::max(largest, std::abs(x - y));
        sum += std::abs(x - y);
        products += x * y;
        squares_a += x * x;
        squares_b += y * y;
        ++elements;
        if (a[i] > a[static_cast<size_t>(row * 5 + best_a)]) best_a = c;
        if (b[i] > b[static_cast<size_t>(row * 5 + best_b)]) best_b = c;
      }
      others += best_a != best_b ? 1 : 0;
      ++rows;
    }
    other_rows += others;
    other_answers += others != 0 ? 1 : 0;
    const Tensor x = floats({request, 5}, a), y = floats({request, 5}, b);
    add_answers({&x, 1}, {&y, 1}, request % 2 == 0, result);
  }
  const OutputDifference& d = result[0];
  CHECK(d.answers == 20);
  CHECK(d.values.elements == elements);
  CHECK(d.values.largest == largest);
  CHECK(d.values.mean() == doctest::Approx(sum / static_cast<double>(elements)));
  CHECK(d.values.cosine() == doctest::Approx(products / std::sqrt(squares_a * squares_b)));
  CHECK(d.rows == rows);
  CHECK(d.rows_of_other_argmax == other_rows);
  CHECK(d.answers_of_other_argmax == other_answers);
  CHECK(other_rows > other_answers);
  CHECK(other_answers < 20);
  CHECK(d.answers_with_new_nonfinite == 0);
}

TEST_CASE("answer difference: NaN and infinity count where the active answer is finite") {
  CHECK(compare(floats({2}, {1, 2}), floats({2}, {1, kNan})).answers_with_new_nonfinite == 1);
  CHECK(compare(floats({2}, {1, 2}), floats({2}, {-kInfinity, 2})).answers_with_new_nonfinite == 1);
  CHECK(compare(floats({2}, {1, kNan}), floats({2}, {1, kNan})).answers_with_new_nonfinite == 0);
  CHECK(compare(floats({2}, {1, kNan}), floats({2}, {1, 2})).answers_with_new_nonfinite == 0);
  CHECK(compare(floats({2}, {1, kNan}), floats({2}, {kInfinity, 2})).answers_with_new_nonfinite == 1);
  const OutputDifference two = compare(floats({3}, {1, 2, 3}), floats({3}, {kNan, 2, kInfinity}));
  CHECK(two.new_nonfinite() == 2);
  CHECK(two.answers_with_new_nonfinite == 1);
}

TEST_CASE("answer difference: argmax is the first largest element, or the first NaN") {
  const auto other = [](const std::vector<float>& a, const std::vector<float>& b) {
    return compare(floats({static_cast<int64_t>(a.size())}, a), floats({static_cast<int64_t>(b.size())}, b))
        .answers_of_other_argmax;
  };
  CHECK(other({1, 2, 3}, {4, 5, 6}) == 0);
  CHECK(other({1, 2, 3}, {4, 7, 6}) == 1);
  CHECK(other({1, 3, 3}, {1, 3, 2}) == 0);  // ties
  CHECK(other({1, 3, 3}, {1, 2, 3}) == 1);
  CHECK(other({1, 2, 3}, {1, 2, kNan}) == 0);
  CHECK(other({1, 2, 3}, {kNan, 2, 3}) == 1);
  CHECK(other({-kInfinity, -kInfinity}, {-kInfinity, -1}) == 1);
  CHECK(other({1}, {2}) == 0);  // no choice
  CHECK(compare(floats({1}, {1}), floats({1}, {2})).rows == 0);
  CHECK(compare(floats({}, {1}), floats({}, {2})).rows == 0);
  CHECK(compare(floats({0, 3}, {}), floats({0, 3}, {})).rows == 0);
  const Tensor classes = floats({3}, {1, 2, 3}), others = floats({3}, {3, 2, 1});
  CHECK(compare(classes, others).rows == 1);
  CHECK(compare(classes, others, true).rows == 0);  // the batch is no row
  CHECK(compare(classes, others, true).values.changed == 2);
  // 2^53 and 2^53 + 1 are one double.
  const int64_t large = int64_t{1} << 53;
  const Tensor a = tensor<int64_t>({2}, {large, large + 1}, DType::kInt64);
  const Tensor b = tensor<int64_t>({2}, {large + 1, large}, DType::kInt64);
  CHECK(compare(a, b).answers_of_other_argmax == 1);
  const Tensor h1 = tensor<uint16_t>({2}, {0x3c00, 0x4000}, DType::kFloat16);  // 1, 2
  const Tensor h2 = tensor<uint16_t>({2}, {0x3c00, 0xc000}, DType::kFloat16);  // 1, -2
  CHECK(compare(h1, h2).answers_of_other_argmax == 1);
  CHECK(compare(h1, h2).values.largest == 4);
  const Tensor c = tensor<float>({2}, {1, 2, 3, 4}, DType::kComplex64);  // has no order
  CHECK(compare(c, c).rows == 0);
  CHECK(compare(c, c).answers == 1);
}

TEST_CASE("answer difference: other strides are other places of the same elements") {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor transposed =
      floats({3, 2}, {1, 4, 2, 5, 3, 6}).as_strided(std::vector<int64_t>{2, 3}, std::vector<int64_t>{1, 2}, 0);
  const OutputDifference d = compare(a, transposed);
  CHECK(d.values.changed == 0);
  CHECK(d.values.elements == 6);
}

TEST_CASE("answer difference: other shapes, dtypes and None are counted and not compared") {
  const Tensor a = floats({2}, {1, 2});
  for (const Tensor& other :
       {floats({1, 2}, {1, 2}), floats({3}, {1, 2, 3}), tensor<int32_t>({2}, {1, 2}, DType::kInt32), Tensor()}) {
    const OutputDifference d = compare(a, other);
    CHECK(d.reshaped == 1);
    CHECK(d.answers == 0);
    CHECK(d.values.elements == 0);
  }
  CHECK(compare(Tensor(), a).reshaped == 1);
  CHECK(compare(Tensor(), Tensor()).reshaped == 0);
  CHECK(compare(Tensor(), Tensor()).answers == 0);
  std::vector<OutputDifference> two(2);
  CHECK(code_of([&] { add_answers({&a, 1}, {&a, 1}, false, two); }) == ErrorCode::kInternal);
}

}  // namespace sconce::server::weights
