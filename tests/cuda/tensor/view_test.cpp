#include <doctest/doctest.h>

#include <cmath>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

Numbers counted(int64_t count) {
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

}  // namespace

TEST_CASE("permute, reshape, narrow, slice_Tensor, squeeze_dim: the same memory, looked at otherwise") {
  const Tensor x = on_device(counted(24), {2, 3, 4}, DType::kFloat32);
  const std::vector<int64_t> order{2, 0, 1}, flat{6, 4};
  const Tensor turned = permute(x, order), part = narrow(x, 2, 1, 2), every = slice_Tensor(x, 2, 0, 4, 2),
               one = squeeze_dim(narrow(x, 0, 1, 1), 0);
  CHECK(difference(turned, {4, 2, 3},
                   {0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}, 0) == "");
  CHECK(difference(reshape(x, flat), {6, 4}, counted(24), 0) == "");
  CHECK(difference(part, {2, 3, 2}, {1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22}, 0) == "");
  CHECK(difference(every, {2, 3, 2}, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}, 0) == "");
  CHECK(difference(one, {3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, 0) == "");
  for (const Tensor* view : {&turned, &part, &every, &one}) CHECK(view->storage() == x.storage());
  // Strides that no view can express are copied.
  const std::vector<int64_t> all{24};
  const Tensor copied = reshape(turned, all);
  CHECK(copied.storage() != x.storage());
  CHECK(numbers_of(copied)[1] == 4.0);
}

TEST_CASE("view_as_complex, view_as_real, view_dtype: other numbers in the same bytes") {
  const Tensor x = on_device(counted(6), {3, 2}, DType::kFloat32);
  const Tensor z = view_as_complex(x);
  CHECK(difference(z, {3}, {{0, 1}, {2, 3}, {4, 5}}, 0) == "");
  CHECK(difference(view_as_real(z), {3, 2}, counted(6), 0) == "");
  const Tensor bits = view_dtype(on_device({1.0, -2.0}, {2}, DType::kFloat32), DType::kInt32);
  CHECK(difference(bits, {2}, {double{0x3F800000}, static_cast<double>(static_cast<int32_t>(0xC0000000))}, 0) == "");
}

TEST_CASE("resize_, resize_as_, set__source_Tensor: other sizes, and more memory where it is needed") {
  Tensor x = on_device(counted(6), {2, 3}, DType::kFloat32);
  const std::vector<int64_t> less{4}, more{3, 4};
  resize_(x, less, std::nullopt);
  CHECK(difference(x, {4}, counted(4), 0) == "");
  resize_(x, more, std::nullopt);
  CHECK(x.storage()->bytes() >= 48);
  const Numbers grown = numbers_of(x);
  for (size_t i = 0; i < 6; ++i) CHECK(grown[i] == counted(6)[i]);
  resize_as_(x, on_device(counted(2), {1, 2}, DType::kFloat32), std::nullopt);
  CHECK(difference(x, {1, 2}, counted(2), 0) == "");
  const Tensor other = on_device({7, 8, 9}, {3}, DType::kFloat32);
  set__source_Tensor(x, other);
  CHECK(difference(x, {3}, {7, 8, 9}, 0) == "");
  CHECK(x.storage() == other.storage());
}

TEST_CASE("cat, pad: parts side by side") {
  const Tensor x = on_device(counted(4), {2, 2}, DType::kInt64), y = on_device({9, 8}, {2, 1}, DType::kInt64);
  const Tensor* const both[] = {&x, &y};
  CHECK(difference(cat({both, 2}, 1), {2, 3}, {0, 1, 9, 2, 3, 8}, 0) == "");
  const std::vector<int64_t> sides{1, 0, 0, 1};
  CHECK(difference(pad(x, sides, "constant", 7.0), {3, 3}, {7, 0, 1, 7, 2, 3, 7, 7, 7}, 0) == "");
}

TEST_CASE("max_unpool3d: each maximum back where it was") {
  const std::vector<int64_t> sizes{2, 2, 2}, stride{2, 2, 2}, none{0, 0, 0};
  const Tensor x = on_device({5, 7}, {1, 2, 1, 1, 1}, DType::kFloat32),
               at = on_device({6, 1}, {1, 2, 1, 1, 1}, DType::kInt64);
  Numbers expected(16);
  expected[6] = 5;
  expected[9] = 7;
  CHECK(difference(max_unpool3d(x, at, sizes, stride, none), {1, 2, 2, 2, 2}, expected, 0) == "");
}

TEST_CASE("searchsorted_Tensor: before and after equal numbers") {
  const Tensor row = on_device({1, 3, 3, 5}, {4}, DType::kFloat32),
               values = on_device({0, 3, 4, 9}, {4}, DType::kFloat32);
  CHECK(difference(searchsorted_Tensor(row, values, false, false, std::nullopt, nullptr), {4}, {0, 1, 3, 4}, 0) == "");
  CHECK(difference(searchsorted_Tensor(row, values, true, true, std::nullopt, nullptr), {4}, {0, 3, 3, 4}, 0) == "");
  CHECK(difference(bucketize_Tensor(values, row, false, false), {4}, {0, 1, 3, 4}, 0) == "");
}

TEST_CASE("mul_Tensor, add_Tensor, pow_Tensor_Scalar, abs: element by element") {
  const Tensor z = on_device({{1, 2}, {3, -4}}, {2}, DType::kComplex64), x = on_device({2, -3}, {2}, DType::kFloat32);
  CHECK(difference(mul_Tensor(z, x), {2}, {{2, 4}, {-9, 12}}, 1e-6) == "");
  CHECK(difference(add_Tensor(z, x, 2.0), {2}, {{5, 2}, {-3, -4}}, 1e-6) == "");
  CHECK(difference(abs(z), {2}, {std::sqrt(5.0), 5}, 1e-6) == "");
  CHECK(difference(pow_Tensor_Scalar(x, 3), {2}, {8, -27}, 1e-6) == "");
  CHECK_THROWS_AS(add_Tensor(on_device({1}, {1}, DType::kInt64), on_device({1}, {1}, DType::kInt64), 1.5), Error);
}

}  // namespace sconce::gpu
