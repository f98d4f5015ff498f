#include "src/cpu/matmul/gemm/block_product.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace sconce {
namespace {

struct Shape {
  int64_t m, n, k;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {3, 5, 7}, {8, 16, 32}, {5, 33, 17}, {32, 64, 128}, {13, 100, 1}, {4, 40, 2}};

template <class T>
T drawn(std::mt19937& generator) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(generator());
  else
    return T(static_cast<float>(static_cast<int>(generator() % 17) - 8) / 4);  // exact in every type
}

template <class A, class B, class C>
void check(const Shape& shape, bool add, bool interleaved) {
  std::mt19937 generator(7);
  const int64_t together = interleaved && sizeof(B) < 4 ? static_cast<int64_t>(4 / sizeof(B)) : 1;
  const int64_t steps = (shape.k + together - 1) / together * together;
  BlockProduct p{shape.m, shape.n, shape.k, shape.k + 3, shape.n + 2, shape.n + 5, add, interleaved};
  std::vector<A> a(static_cast<size_t>(p.m * p.a_rs));
  std::vector<B> b(static_cast<size_t>(steps * p.b_rs));
  std::vector<C> c(static_cast<size_t>(p.m * p.c_rs));
  for (A& x : a) x = drawn<A>(generator);
  for (B& x : b) x = drawn<B>(generator);
  for (C& x : c) x = static_cast<C>(static_cast<int>(generator() % 100));
  const std::vector<C> before = c;
  block_product(p, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.c_rs; ++j) {
      const auto at = static_cast<size_t>(i * p.c_rs + j);
      double wanted = add || j >= p.n ? static_cast<double>(before[at]) : 0;
      for (int64_t s = 0; j < p.n && s < p.k; ++s) {
        const int64_t from = (s / together * p.b_rs + j) * together + s % together;
        wanted += static_cast<double>(a[static_cast<size_t>(i * p.a_rs + s)]) *
                  static_cast<double>(b[static_cast<size_t>(from)]);
      }
      CHECK(static_cast<double>(c[at]) == doctest::Approx(wanted).epsilon(1e-6));
    }
}

}  // namespace

TEST_CASE_TEMPLATE("block_product: floats against sums in double", S, float, Half, BFloat16, Float8E4M3FN, Float8E5M2) {
  for (const Shape& shape : kShapes)
    for (const bool add : {false, true})
      for (const bool interleaved : {false, true}) check<S, S, float>(shape, add, interleaved);
}

TEST_CASE("block_product: bytes, signed or not, exactly") {
  for (const Shape& shape : kShapes)
    for (const bool add : {false, true})
      for (const bool interleaved : {false, true}) {
        check<uint8_t, uint8_t, int32_t>(shape, add, interleaved);
        check<uint8_t, int8_t, int32_t>(shape, add, interleaved);
        check<int8_t, int8_t, int32_t>(shape, add, interleaved);
      }
}

TEST_CASE("block_product: what c holds is not read where it is not added to") {
  const float a[] = {1, 2}, b[] = {3, 4};
  float c[] = {NAN};
  block_product(BlockProduct{1, 1, 2, 2, 1, 1, false, false}, a, b, c);
  CHECK(c[0] == 11);
  block_product(BlockProduct{1, 1, 0, 2, 1, 1, false, false}, a, b, c);
  CHECK(c[0] == 0);
}

TEST_CASE("block_product: pairs of rows side by side") {
  const uint16_t b[] = {1, 2, 9, 3, 4, 9, 5, 6, 9};
  uint16_t to[8] = {};
  interleave_pairs(3, 2, b, 3, to, 2);
  CHECK(std::vector<uint16_t>(to, to + 8) == std::vector<uint16_t>{1, 3, 2, 4, 5, 0, 6, 0});
}

}  // namespace sconce
