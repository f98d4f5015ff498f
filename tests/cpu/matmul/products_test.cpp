#include "src/cpu/matmul/products.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "sconce/float_types.h"
#include "src/operators/cpu_ops.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

TEST_CASE("dot, vdot: products of small floats are rounded once, after their sum") {
  const auto check = [](auto one, DType dtype) {
    using T = decltype(one);
    // If the first product were rounded to the dtype, its lowest digits would be missing after the subtraction.
    const int64_t k = 3, step[] = {2}, sizes[] = {k};
    Tensor a = Tensor::empty(Ints{6}, dtype), b = Tensor::empty(Ints{6}, dtype);
    const float digit = 1.0f + std::numeric_limits<float>::epsilon() * (dtype == DType::kFloat16 ? 0x1p13f : 0x1p16f);
    const float xs[] = {digit, -1, 0.125f}, ys[] = {digit, 1, 0};
    for (int64_t i = 0; i < 6; ++i) a.data_as<T>()[i] = b.data_as<T>()[i] = T(99.0f);
    for (int64_t i = 0; i < k; ++i) {
      a.data_as<T>()[2 * i] = T(xs[i]);
      b.data_as<T>()[2 * i] = T(ys[i]);
    }
    const Tensor x = a.as_strided(sizes, step, 0), y = b.as_strided(sizes, step, 0);
    const auto exactly = T(static_cast<float>(double{digit} * double{digit} - 1));
    CHECK(static_cast<float>(*cpu::dot(x, y).data_as<T>()) == static_cast<float>(exactly));
    CHECK(static_cast<float>(*cpu::vdot(x, y).data_as<T>()) == static_cast<float>(exactly));
  };
  check(Half(), DType::kFloat16);
  check(BFloat16(), DType::kBFloat16);
}

TEST_CASE("addr: the result lies as all three operands decide, self read or not") {
  const auto numbers = [](Ints sizes, Ints strides) {
    Tensor t = Tensor::empty_strided(sizes, strides, DType::kFloat32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i);
    return t;
  };
  const Tensor self = numbers({4, 6}, {1, 4}), rows = numbers({4}, {1}), columns = numbers({6}, {1});
  for (const double beta : {0.0, 1.0, 2.0}) {
    const Tensor out = cpu::addr(self, rows, columns, Scalar(beta), Scalar(1.0));
    CHECK(Ints(out.strides().begin(), out.strides().end()) == Ints{1, 4});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j)
        CHECK(out.data_as<float>()[i + 4 * j] ==
              doctest::Approx(beta * static_cast<double>(i + 4 * j) + double(i * j)));
  }
}

TEST_CASE("mm, addmm, addbmm: float8 in float32, rounded at the end") {
  const auto check = [](auto one, DType dtype) {
    using T = decltype(one);
    const int64_t m = 3, n = 5, k = 7;
    const auto numbers = [&](Ints sizes, int64_t seed) {
      Tensor t = Tensor::empty(sizes, dtype);
      for (int64_t i = 0; i < t.numel(); ++i) t.data_as<T>()[i] = T(0.5f * static_cast<float>((i * 5 + seed) % 9 - 4));
      return t;
    };
    const Tensor a = numbers({m, k}, 1), b = numbers({k, n}, 4), self = numbers({n}, 2);
    const auto value = [](const Tensor& t, int64_t i) { return static_cast<float>(t.data_as<T>()[i]); };
    Tensor plain = Tensor::empty(Ints{m, n}, dtype), added = Tensor::empty(Ints{m, n}, dtype);
    cpu::mm_out(plain, a, b);
    cpu::addmm_out(added, self, a, b, 2, -0.5);
    const Tensor twice = cpu::addbmm(self, a.as_strided(Ints{2, m, k}, Ints{0, k, 1}, 0),
                                     b.as_strided(Ints{2, k, n}, Ints{0, n, 1}, 0), 1, 1);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += value(a, i * k + p) * value(b, p * n + j);
        CHECK(value(plain, i * n + j) == static_cast<float>(T(sum)));
        CHECK(value(added, i * n + j) == static_cast<float>(T(2 * value(self, j) - 0.5f * sum)));
        CHECK(value(twice, i * n + j) == static_cast<float>(T(static_cast<float>(T(value(self, j) + sum)) + sum)));
      }
  };
  check(Float8E4M3FN(), DType::kFloat8E4M3FN);
  check(Float8E5M2(), DType::kFloat8E5M2);
}

TEST_CASE("mm, bmm: without steps zeros of any dtype") {
  for (const DType dtype : {DType::kBool, DType::kUInt16, DType::kComplex32, DType::kFloat8E5M2, DType::kFloat32}) {
    Tensor out = Tensor::empty(Ints{2, 3}, dtype), batch = Tensor::empty(Ints{1, 2, 3}, dtype);
    std::memset(out.data(), 0x7F, out.bytes());
    std::memset(batch.data(), 0x7F, batch.bytes());
    cpu::mm_out(out, Tensor::empty(Ints{2, 0}, dtype), Tensor::empty(Ints{0, 3}, dtype));
    cpu::bmm_out(batch, Tensor::empty(Ints{1, 2, 0}, dtype), Tensor::empty(Ints{1, 0, 3}, dtype));
    for (size_t i = 0; i < out.bytes(); ++i) CHECK(out.data_as<uint8_t>()[i] == 0);
    for (size_t i = 0; i < batch.bytes(); ++i) CHECK(batch.data_as<uint8_t>()[i] == 0);
  }
}

TEST_CASE("_compute_linear_combination: truths") {
  Tensor x = Tensor::empty(Ints{3, 2}, DType::kBool), c = Tensor::empty(Ints{2, 3}, DType::kBool);
  const bool xs[] = {true, false, true, false, false, true}, cs[] = {true, true, false, false, false, true};
  std::copy_n(xs, 6, x.data_as<bool>());
  std::copy_n(cs, 6, c.data_as<bool>());
  const Tensor out = cpu::_compute_linear_combination(x, c);
  const bool wanted[] = {true, false, false, true};
  REQUIRE(out.dtype() == DType::kBool);
  for (int64_t i = 0; i < 4; ++i) CHECK(out.data_as<bool>()[i] == wanted[i]);
}
