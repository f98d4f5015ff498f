#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/aoti_abi/guard.h"
#include "tests/aoti_abi/core_abi.h"

using namespace sconce;
using namespace sconce::aoti_abi;

namespace {

template <class T>
AtenTensorHandle one(T value, DType dtype, int64_t count = 1) {
  Tensor t = Tensor::empty(IntSpan(&count, 1), dtype);
  for (int64_t i = 0; i < count; ++i) t.data_as<T>()[i] = value;
  return new_handle(std::move(t));
}

}  // namespace

// Expected: torch.tensor(value).item() and the conversions of c10::checked_convert, torch 2.15.
TEST_CASE("item: what the type cannot hold is an error") {
  int8_t i8 = 0;
  int64_t i64 = 0;
  float f32 = 0;
  bool b = false;
  AtenTensorHandle t = one<int64_t>(200, DType::kInt64);
  CHECK(aoti_torch_item_int8(t, &i8) == 1);
  CHECK(take_error()->text == "aoti_torch_item_int8: value cannot be converted to type int8 without overflow");
  CHECK(aoti_torch_item_int64(t, &i64) == 0);
  CHECK(i64 == 200);
  CHECK(aoti_torch_item_bool(t, &b) == 0);
  CHECK(b);
  delete_handle(t);

  t = one<double>(1e300, DType::kFloat64);
  CHECK(aoti_torch_item_float32(t, &f32) == 1);
  CHECK(aoti_torch_item_int64(t, &i64) == 1);
  take_error();
  delete_handle(t);

  t = one<double>(-2.9, DType::kFloat64);
  CHECK(aoti_torch_item_int64(t, &i64) == 0);
  CHECK(i64 == -2);
  delete_handle(t);

  t = one<double>(std::numeric_limits<double>::infinity(), DType::kFloat64);
  CHECK(aoti_torch_item_float32(t, &f32) == 0);
  CHECK(std::isinf(f32));
  CHECK(aoti_torch_item_int64(t, &i64) == 1);
  take_error();
  delete_handle(t);

  t = one<uint64_t>(std::numeric_limits<uint64_t>::max(), DType::kUInt64);
  CHECK(aoti_torch_item_int64(t, &i64) == 1);
  take_error();
  delete_handle(t);
}

TEST_CASE("item: half types, bool and several elements") {
  float f32 = 0;
  AtenTensorHandle t = one<Half>(Half(0.5f), DType::kFloat16);
  CHECK(aoti_torch_item_float32(t, &f32) == 0);
  CHECK(f32 == 0.5f);
  delete_handle(t);
  Half half{};
  t = one<float>(70000.f, DType::kFloat32);
  CHECK(aoti_torch_item_float16(t, &half) == 1);
  take_error();
  delete_handle(t);
  int64_t i64 = 0;
  t = one<uint8_t>(1, DType::kBool);
  CHECK(aoti_torch_item_int64(t, &i64) == 0);
  CHECK(i64 == 1);
  delete_handle(t);
  t = one<float>(1, DType::kFloat32, 2);
  CHECK(aoti_torch_item_float32(t, &f32) == 1);
  CHECK(take_error()->text == "aoti_torch_item_float32: a tensor with 2 elements cannot be converted to Scalar");
  delete_handle(t);
}

TEST_CASE("scalar_to_tensor: a 0-dimensional tensor of that type") {
  AtenTensorHandle t = nullptr;
  REQUIRE(aoti_torch_scalar_to_tensor_uint64(~uint64_t{0}, &t) == 0);
  CHECK(tensor_of(t)->dim() == 0);
  CHECK(tensor_of(t)->dtype() == DType::kUInt64);
  CHECK(*tensor_of(t)->data_as<uint64_t>() == ~uint64_t{0});
  delete_handle(t);
  REQUIRE(aoti_torch_scalar_to_tensor_bool(true, &t) == 0);
  CHECK(tensor_of(t)->dtype() == DType::kBool);
  delete_handle(t);
}

TEST_CASE("check_inf_and_nan and check: an error with the numbers, not the end of the process") {
  AtenTensorHandle t = one<float>(std::nanf(""), DType::kFloat32, 3);
  CHECK(aoti_torch_check_inf_and_nan("buf0", t) == 1);
  CHECK(take_error()->text == "aoti_torch_check_inf_and_nan: buf0 has 3 NaN and 0 Inf values");
  delete_handle(t);
  aoti_torch_check(true, "f", "x.cpp", 1, "fine");
  CHECK_THROWS_WITH_AS(aoti_torch_check(false, "f", "x.cpp", 1, "index out of bounds"),
                       "index out of bounds (f at x.cpp:1)", std::runtime_error);
}
