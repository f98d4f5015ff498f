#include "src/runner/replicas/input_check.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

using namespace sconce;
using namespace sconce::runner;
using Ints = std::vector<int64_t>;

namespace {

Dim fixed(int64_t size) { return {size, size, ""}; }
Dim range(int64_t min, int64_t max, std::string symbol) { return {min, max, std::move(symbol)}; }

TensorSpec spec(std::vector<Dim> dims, std::vector<std::optional<int64_t>> strides = {}) {
  TensorSpec s;
  s.name = "arg0_1";
  s.dtype = DType::kFloat32;
  s.has_shape = true;
  s.dims = std::move(dims);
  s.strides = std::move(strides);
  return s;
}

Tensor tensor(const Ints& sizes, DType dtype = DType::kFloat32) { return Tensor::empty(sizes, dtype); }

std::string refusal(const InputCheck& check, std::vector<Tensor> inputs) {
  try {
    check(inputs);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("input check: count, dtype and rank always") {
  const InputCheck check({spec({fixed(4), fixed(3)})}, Device{}, false);
  CHECK(refusal(check, {}) == "expected 1 inputs, got 0");
  CHECK(refusal(check, {tensor({4, 3}, DType::kFloat16)}) == "input 0 (arg0_1): expected float32, got float16");
  CHECK(refusal(check, {tensor({4})}) == "input 0 (arg0_1): expected 2 dimensions, got 1 in [4]");
  CHECK(refusal(check, {Tensor()}) == "input 0 (arg0_1): the tensor is undefined");
  CHECK(refusal(check, {tensor({5, 9})}) == "");
}

TEST_CASE("input check: without a shape, no fewer dimensions than the code speaks of") {
  TensorSpec unknown;
  unknown.name = "x";
  const InputCheck check({unknown}, Device{}, true, {2});
  const Tensor row = Tensor::empty(std::vector<int64_t>{4}, DType::kFloat32),
               rows = Tensor::empty(std::vector<int64_t>{2, 4}, DType::kFloat32);
  CHECK_THROWS_WITH_AS(check(std::vector{row}), "input 0 (x): expected at least 2 dimensions, got 1 in [4]", Error);
  check(std::vector{rows});
}

TEST_CASE("input check: fixed sizes and ranges") {
  const InputCheck check({spec({range(4, 64, "s0"), fixed(3)})}, Device{}, true);
  CHECK(refusal(check, {tensor({4, 3})}) == "");
  CHECK(refusal(check, {tensor({64, 3})}) == "");
  CHECK(refusal(check, {tensor({3, 3})}) == "input 0 (arg0_1): expected size >= 4 at dimension 0, got 3 in [3, 3]");
  CHECK(refusal(check, {tensor({65, 3})}) == "input 0 (arg0_1): expected size <= 64 at dimension 0, got 65 in [65, 3]");
  CHECK(refusal(check, {tensor({4, 2})}) == "input 0 (arg0_1): expected size 3 at dimension 1, got 2 in [4, 2]");
}

TEST_CASE("input check: a recorded minimum of 2 accepts 1") {
  const InputCheck check({spec({range(2, 8, "s0")})}, Device{}, true);
  CHECK(refusal(check, {tensor({1})}) == "");
  CHECK(refusal(check, {tensor({0})}) != "");
  CHECK(refusal(InputCheck({spec({fixed(2)})}, Device{}, true), {tensor({1})}) != "");
}

TEST_CASE("input check: equal symbols are equal sizes") {
  TensorSpec second = spec({fixed(3), range(2, INT64_MAX, "s0")});
  second.name = "arg1_1";
  const InputCheck check({spec({range(2, INT64_MAX, "s0")}), second}, Device{}, true);
  CHECK(refusal(check, {tensor({5}), tensor({3, 5})}) == "");
  CHECK(refusal(check, {tensor({5}), tensor({3, 6})}) ==
        "input 1 (arg1_1): expected size 5 at dimension 1 as in dimension 0 of input 0 (arg0_1), got 6");
}

TEST_CASE("input check: strides, but for dimensions where they mean nothing") {
  const InputCheck check({spec({range(2, 9, "s0"), fixed(3)}, {3, 1})}, Device{}, true);
  Tensor storage = tensor({64});
  CHECK(refusal(check, {storage.as_strided(Ints{2, 3}, Ints{3, 1}, 0)}) == "");
  CHECK(refusal(check, {storage.as_strided(Ints{2, 3}, Ints{1, 2}, 0)}) ==
        "input 0 (arg0_1): expected stride 1 at dimension 1, got 2 in strides [1, 2]");
  CHECK(refusal(check, {storage.as_strided(Ints{1, 3}, Ints{50, 1}, 0)}) == "");
}

TEST_CASE("input check: an unrecorded stride of a row-major input must be row-major") {
  const InputCheck check({spec({range(2, 9, "s0"), range(2, 9, "s1")}, {std::nullopt, 1})}, Device{}, true);
  Tensor storage = tensor({64});
  CHECK(refusal(check, {storage.as_strided(Ints{2, 3}, Ints{3, 1}, 0)}) == "");
  CHECK(refusal(check, {storage.as_strided(Ints{2, 3}, Ints{5, 1}, 0)}) ==
        "input 0 (arg0_1): expected stride 3 at dimension 0, got 5 in strides [5, 1]");
  const InputCheck other({spec({range(2, 9, "s0"), range(2, 9, "s1")}, {1, std::nullopt})}, Device{}, true);
  CHECK(refusal(other, {storage.as_strided(Ints{2, 3}, Ints{1, 5}, 0)}) == "");
}
