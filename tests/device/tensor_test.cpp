#include "sconce/tensor.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/error.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

TEST_CASE("tensor: a default one is undefined") {
  Tensor t;
  CHECK(!t.defined());
  CHECK(t.data() == nullptr);
  CHECK(Tensor(t).defined() == false);
}

TEST_CASE("tensor: copies share the storage, moves leave nothing") {
  Tensor a = Tensor::empty(Ints{2, 3}, DType::kFloat32);
  CHECK(a.numel() == 6);
  CHECK(a.strides()[0] == 3);
  Tensor b = a;
  CHECK(b.data() == a.data());
  CHECK(a.storage()->references() == 2);
  Tensor c = std::move(a);
  CHECK(!a.defined());
  CHECK(c.size(1) == 3);
  b = Tensor();
  CHECK(c.storage()->references() == 1);
}

TEST_CASE("tensor: more dimensions than fit inline") {
  const Ints sizes{2, 1, 2, 1, 2, 1, 2};
  Tensor a = Tensor::empty(sizes, DType::kInt8);
  Tensor b = a, c = std::move(b);
  CHECK(Ints(c.sizes().begin(), c.sizes().end()) == sizes);
  c = a;
  c = Tensor::empty(Ints{1}, DType::kInt8);
  CHECK(c.dim() == 1);
  CHECK(a.dim() == 7);
}

TEST_CASE("tensor: contiguity ignores strides of size 1 and of empty tensors") {
  Tensor t = Tensor::empty(Ints{16}, DType::kFloat32);
  CHECK(t.as_strided(Ints{4, 1, 4}, Ints{4, 99, 1}, 0).is_contiguous());
  CHECK(!t.as_strided(Ints{4, 4}, Ints{1, 4}, 0).is_contiguous());
  CHECK(t.as_strided(Ints{4, 4}, Ints{1, 4}, 0).is_dense());
  CHECK(t.as_strided(Ints{0, 4}, Ints{1, 4}, 0).is_contiguous());
  CHECK(!t.as_strided(Ints{4, 4}, Ints{0, 1}, 0).is_dense());
}

TEST_CASE("tensor: dishonest shapes are refused") {
  Tensor t = Tensor::empty(Ints{4}, DType::kFloat32);
  CHECK_THROWS_AS(t.as_strided(Ints{5}, Ints{1}, 0), Error);
  CHECK_THROWS_AS(t.as_strided(Ints{4}, Ints{1}, 1), Error);
  CHECK_THROWS_AS(t.as_strided(Ints{-1}, Ints{1}, 0), Error);
  CHECK_THROWS_AS(t.as_strided(Ints{2}, Ints{-1}, 2), Error);
  CHECK_THROWS_AS(t.as_strided(Ints{1}, Ints{1}, -1), Error);
  CHECK_THROWS_AS(Tensor::empty(Ints{int64_t{1} << 61, 8}, DType::kFloat32), Error);
  CHECK_THROWS_AS(Tensor::empty(Ints{int64_t{1} << 40, int64_t{1} << 40, 1}, DType::kInt8), Error);
  CHECK(Tensor::empty(Ints{int64_t{1} << 40, int64_t{1} << 40, 0}, DType::kInt8).numel() == 0);
}

TEST_CASE("tensor: from_blob tells when the last view goes") {
  float values[6] = {};
  int released = 0;
  {
    Tensor t = Tensor::from_blob(
        values, Ints{2, 3}, Ints{3, 1}, DType::kFloat32, {},
        [](void*, size_t, void* context) noexcept { ++*static_cast<int*>(context); }, &released);
    Tensor view = t.as_strided(Ints{3}, Ints{1}, 3);
    t = Tensor();
    CHECK(released == 0);
    CHECK(view.data_as<float>() == values + 3);
  }
  CHECK(released == 1);
}
