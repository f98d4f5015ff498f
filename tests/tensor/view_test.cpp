#include "src/tensor/view.h"

#include <doctest/doctest.h>

#include <cstring>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;
TEST_CASE("permute: sizes and strides") { run_kernel("view.cases", "permute", cpu::permute); }
TEST_CASE("reshape: a view where there is one, else a copy") {
  run_kernel("view.cases", "reshape", cpu::reshape);
  const Tensor t = Tensor::empty(Ints{2, 6}, DType::kInt8);
  CHECK(cpu::reshape(t, Ints{3, -1}).storage() == t.storage());
  CHECK(cpu::reshape(cpu::permute(t, Ints{1, 0}), Ints{12}).storage() != t.storage());
}
TEST_CASE("slice_Tensor: bounds are clamped") {
  run_kernel("view.cases", "slice_Tensor", cpu::slice_Tensor);
  const Tensor t = Tensor::empty(Ints{4}, DType::kInt8);
  CHECK(cpu::slice_Tensor(t, 0, 1, INT64_MAX, INT64_MAX).size(0) == 1);
  CHECK(cpu::slice_Tensor(t, 0, INT64_MIN + 4, INT64_MAX, 1).size(0) == 4);
}
TEST_CASE("squeeze_dim: only dimensions of size 1 go") { run_kernel("view.cases", "squeeze_dim", cpu::squeeze_dim); }
TEST_CASE("narrow: bounds are checked") {
  run_kernel("view.cases", "narrow", cpu::narrow);
  CHECK_THROWS_AS(cpu::narrow(Tensor::empty(Ints{4}, DType::kInt8), 0, 1, INT64_MAX), Error);
}
TEST_CASE("view_dtype: the same, wider and narrower elements") {
  run_kernel("view.cases", "view_dtype", cpu::view_dtype);
}
TEST_CASE("view_as_real: a last dimension of two") { run_kernel("view.cases", "view_as_real", cpu::view_as_real); }
TEST_CASE("view_as_complex: pairs that lie together") {
  run_kernel("view.cases", "view_as_complex", cpu::view_as_complex);
}

TEST_CASE("resize_: strides, and what the storage holds") {
  run_kernel("view.cases", "resize_", cpu::resize_);
  Tensor t = Tensor::empty(Ints{4}, DType::kInt32);
  std::memcpy(t.data(), "0123456789abcdef", 16);
  const Tensor alias = t;
  cpu::resize_(t, Ints{3, 5}, std::nullopt);
  CHECK(t.storage()->bytes() >= 60);
  CHECK(std::memcmp(t.data(), "0123456789abcdef", 16) == 0);
  CHECK(alias.data() == t.data());
  t.storage()->set_immutable(true);
  CHECK_THROWS_WITH_AS(cpu::resize_(t, Ints{64}, std::nullopt), doctest::Contains("constant's storage"), Error);
  cpu::resize_(t, Ints{2, 2}, std::nullopt);
  CHECK(t.numel() == 4);
}
TEST_CASE("resize_as_: sizes and, on request, the format of another") {
  run_kernel("view.cases", "resize_as_", cpu::resize_as_);
}
TEST_CASE("set__source_Tensor: the storage of another, the dtype of its own") {
  run_cases("view.cases", "set__source_Tensor", [](Case& c) {
    cpu::set__source_Tensor(c.args[0].tensor(), c.tensor(1));
    return std::vector{c.tensor(0)};
  });
  Tensor self = Tensor::empty(Ints{1}, DType::kFloat64);
  const Tensor source = Tensor::empty(Ints{3}, DType::kInt8);
  cpu::set__source_Tensor(self, source);
  CHECK(self.storage() == source.storage());
  CHECK(self.storage()->bytes() >= 24);
}

TEST_CASE("pad: all four modes") {
  run_kernel("view.cases", "pad", cpu::pad);
  CHECK_THROWS_AS(cpu::pad(Tensor::empty(Ints{4}, DType::kInt8), Ints{INT64_MAX, INT64_MAX}, "constant", {}), Error);
}

TEST_CASE("full, new_empty, new_zeros: dtype, sizes and values") {
  const Tensor f = cpu::full(Ints{2, 3}, 1.5, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  CHECK(f.dtype() == DType::kFloat32);
  for (int i = 0; i < 6; ++i) CHECK(f.data_as<float>()[i] == 1.5f);
  const Tensor z = cpu::new_zeros(f, Ints{4}, DType::kInt64, 0, Device{}, 0);
  for (int i = 0; i < 4; ++i) CHECK(z.data_as<int64_t>()[i] == 0);
  const Tensor e = cpu::new_empty(f, Ints{0, 5}, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  CHECK(e.dtype() == DType::kFloat32);
  CHECK(e.size(1) == 5);
  CHECK_THROWS_WITH_AS(cpu::full(Ints{1}, 300, DType::kUInt8, {}, {}, {}), doctest::Contains("overflow"), Error);
  CHECK_THROWS_WITH_AS(cpu::new_empty(f, Ints{-1}, {}, {}, {}, {}), doctest::Contains("new_empty: negative"), Error);
}

TEST_CASE("view_as_complex: a dimension of one element may have an odd stride") {
  const Tensor x = Tensor::empty_strided(Ints{5, 1, 2}, Ints{14, 7, 1}, DType::kFloat64);
  CHECK(std::ranges::equal(cpu::view_as_complex(x).strides(), Ints{7, 3}));
  CHECK_THROWS_AS(cpu::view_as_complex(Tensor::empty_strided(Ints{5, 2, 2}, Ints{14, 7, 1}, DType::kFloat64)), Error);
}
