#include "src/tensor/strided_loop.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/error.h"
#include "src/tensor/elements/dispatch.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

namespace {
Ints ints(IntSpan s) { return {s.begin(), s.end()}; }
}  // namespace

TEST_CASE("strided_loop: joins even dimensions and visits each element once") {
  // [2, 3, 4] of which the second operand is transposed in the first two dimensions.
  const StridedLoop<2> loop(Ints{2, 3, 4}, {Ints{12, 4, 1}, Ints{4, 8, 1}}, {4, 4});
  CHECK(loop.rank == 3);
  const StridedLoop<2> packed(Ints{2, 3, 4}, {Ints{12, 4, 1}, Ints{12, 4, 1}}, {4, 8});
  CHECK(packed.rank == 1);
  std::vector<float> a(24), b(24);
  for (int i = 0; i < 24; ++i) b[i] = static_cast<float>(i);
  for (int64_t step : {1, 5, 7, 24}) {  // any split into ranges covers the same elements
    std::fill(a.begin(), a.end(), -1.0f);
    for (int64_t i = 0; i < 24; i += step)
      loop.run({reinterpret_cast<char*>(a.data()), reinterpret_cast<char*>(b.data())}, i,
               std::min<int64_t>(24, i + step), [](char* const* p, const int64_t* s, int64_t n) {
                 for (int64_t k = 0; k < n; ++k)
                   *reinterpret_cast<float*>(p[0] + k * s[0]) = *reinterpret_cast<float*>(p[1] + k * s[1]);
               });
    int wrong = 0;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 4; ++k) wrong += a[i * 12 + j * 4 + k] != static_cast<float>(j * 8 + i * 4 + k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("strided_loop: one element and none") {
  int calls = 0;
  const auto count = [&](char* const*, const int64_t*, int64_t n) { calls += static_cast<int>(n); };
  StridedLoop<1>(Ints{}, {Ints{}}, {4}).run({nullptr}, count);
  CHECK(calls == 1);
  StridedLoop<1>(Ints{1, 1}, {Ints{7, 9}}, {4}).run({nullptr}, count);
  CHECK(calls == 2);
  StridedLoop<1>(Ints{3, 0}, {Ints{1, 1}}, {4}).run({nullptr}, count);
  CHECK(calls == 2);
}

TEST_CASE("strided_loop: shapes broadcast or say why not") {
  CHECK(ints(broadcast_shapes("add", Ints{3, 1}, Ints{2, 1, 4})) == Ints{2, 3, 4});
  CHECK(ints(broadcast_shapes("add", Ints{}, Ints{0})) == Ints{0});
  CHECK_THROWS_WITH_AS(broadcast_shapes("add", Ints{3}, Ints{4}),
                       "add: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
                       Error);
  CHECK(wrap_dim("sort", -1, 0) == 0);
  CHECK_THROWS_WITH_AS(wrap_dim("sort", 2, 2),
                       "sort: Dimension out of range (expected to be in range of [-2, 1], but got 2)", Error);
}

// Values from torch 2.15: the strides of a + b.
TEST_CASE("strided_loop: results get the strides that TensorIterator gives") {
  const auto strides = [](Ints shape, std::vector<std::pair<Ints, Ints>> views) {
    std::vector<Tensor> tensors;
    for (auto& [sizes, s] : views) tensors.push_back(Tensor::empty_strided(sizes, s, DType::kFloat32));
    std::vector<const Tensor*> pointers;
    for (auto& t : tensors) pointers.push_back(&t);
    return ints(elementwise_strides(shape, pointers));
  };
  CHECK(strides({3, 4}, {{{3, 4}, {1, 3}}, {{3, 4}, {1, 3}}}) == Ints{1, 3});
  CHECK(strides({3, 4}, {{{3, 4}, {1, 3}}, {{3, 4}, {4, 1}}}) == Ints{1, 3});
  CHECK(strides({3, 4}, {{{3, 4}, {4, 1}}, {{3, 4}, {1, 3}}}) == Ints{4, 1});
  CHECK(strides({2, 3, 4}, {{{3, 4}, {1, 3}}, {{2, 1, 4}, {4, 4, 1}}}) == Ints{12, 1, 3});
  CHECK(strides({2, 3, 4, 5}, {{{2, 3, 4, 5}, {60, 1, 15, 3}}, {{2, 3, 4, 5}, {60, 1, 15, 3}}}) == Ints{60, 1, 15, 3});
  CHECK(strides({2, 3}, {{{2, 3}, {6, 2}}}) == Ints{3, 1});
}

TEST_CASE("dispatch: names the operator and the dtype") {
  CHECK(dispatch_real(DType::kInt16, "topk", []<class T>() { return sizeof(T); }) == 2);
  CHECK_THROWS_WITH_AS(dispatch_floating(DType::kInt16, "topk", []<class T>() {}), "topk: not implemented for 'int16'",
                       Error);
}
