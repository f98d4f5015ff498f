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

TEST_CASE("input check: sizes for which code would leave a tensor") {
  const std::vector<AccessBound> bounds{{"kernel k: 'y'", {"s0 // 2 - 1"}, "s0 // 2 - 1", "s1"}};
  const std::vector<TensorSpec> half{spec({range(2, 64, "s0")}), spec({range(2, 64, "s1")})};
  const InputCheck check(half, Device{}, true, {}, bounds);
  CHECK(refusal(check, {tensor({8}), tensor({4})}) == "");
  CHECK(refusal(check, {tensor({8}), tensor({9})}) == "");
  CHECK(refusal(check, {tensor({1}), tensor({0})}) == "");
  CHECK(refusal(check, {tensor({10}), tensor({4})}) ==
        "input 1 (arg0_1): these sizes do not go together: kernel k: 'y' would be accessed at element 4 of 4, "
        "s0 // 2 - 1 of s1, where s1 = 4 is dimension 0 of input 1 (arg0_1), and s0 = 10 is dimension 0 of input 0 "
        "(arg0_1) in [4]");
}

TEST_CASE("input check: a recorded minimum of 2 accepts 0 and 1") {
  const InputCheck check({spec({range(2, 8, "s0")})}, Device{}, true);
  CHECK(refusal(check, {tensor({0})}) == "");
  CHECK(refusal(check, {tensor({1})}) == "");
  CHECK(refusal(InputCheck({spec({range(3, 8, "s0")})}, Device{}, true), {tensor({1})}) != "");
  CHECK(refusal(InputCheck({spec({fixed(2)})}, Device{}, true), {tensor({1})}) != "");
}

TEST_CASE("input check: equal symbols are equal sizes") {
  TensorSpec second = spec({fixed(3), range(2, INT64_MAX, "s0")});
  second.name = "arg1_1";
  const InputCheck check({spec({range(2, INT64_MAX, "s0")}), second}, Device{}, true);
  CHECK(refusal(check, {tensor({5}), tensor({3, 5})}) == "");
  CHECK(refusal(check, {tensor({5}), tensor({3, 6})}) ==
        "input 1 (arg1_1): expected size 5 at dimension 1 as in dimension 0 of input 0 (arg0_1), got 6 in [3, 6]");
}

TEST_CASE("input check: a device takes 0 only where it is recorded") {
  const Device cuda{DeviceType::kCuda, 0};
  CHECK(refusal(InputCheck({spec({range(2, 8, "s0")})}, cuda, true), {tensor({0})}) ==
        "input 0 (arg0_1): expected size >= 1 at dimension 0, got 0 in [0]: for a device, the package must record that "
        "it may be 0");
  CHECK(refusal(InputCheck({spec({range(2, 8, "s0")})}, cuda, true), {tensor({1})}) == "");
  CHECK(refusal(InputCheck({spec({range(0, 8, "s0")})}, cuda, true), {tensor({0})}) == "");
}

TEST_CASE("input check: sizes that are computed from others") {
  TensorSpec y = spec({range(2, 64, "s17"), fixed(4)});
  y.name = "y";
  const InputCheck half({spec({range(4, 128, "2*s17"), fixed(4)}), y}, Device{}, true);
  CHECK(refusal(half, {tensor({6, 4}), tensor({3, 4})}) == "");
  CHECK(refusal(half, {tensor({2, 4}), tensor({1, 4})}) == "");
  CHECK(refusal(half, {tensor({0, 4}), tensor({0, 4})}) == "");
  CHECK(refusal(half, {tensor({8, 4}), tensor({3, 4})}) ==
        "input 0 (arg0_1): expected size 2*s17 = 6 at dimension 0, got 8, where s17 = 3 is dimension 0 of input 1 (y) "
        "in [8, 4]");
  CHECK(refusal(half, {tensor({7, 4}), tensor({3, 4})}) != "");
  CHECK(refusal(half, {tensor({128, 4}), tensor({1, 4})}) != "");
  TensorSpec plus = spec({range(3, 65, "1 + s77"), fixed(4)});
  const InputCheck offset({spec({range(2, 64, "s77"), fixed(4)}), plus}, Device{}, true);
  CHECK(refusal(offset, {tensor({1, 4}), tensor({2, 4})}) == "");
  CHECK(refusal(offset, {tensor({9, 4}), tensor({4, 4})}) != "");
  CHECK(refusal(offset, {tensor({3, 4}), tensor({9, 4})}) != "");
  const InputCheck multiple({spec({range(2992, INT64_MAX, "1496*s81"), fixed(4)})}, Device{}, true);
  CHECK(refusal(multiple, {tensor({1496, 4})}) == "");
  CHECK(refusal(multiple, {tensor({3000, 4})}) ==
        "input 0 (arg0_1): expected size 1496*s81 at dimension 0 for a whole number s81, got 3000 in [3000, 4]");
}

TEST_CASE("input check: sizes that the package does not tie to anything are refused as such") {
  const InputCheck check({spec({range(4, 64, "s0 + s1")}), spec({range(1, 64, "s0*s1")})}, Device{}, true);
  try {
    check(std::vector{tensor({5}), tensor({6})});
    FAIL("answered");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kUnsupported);
  }
}

TEST_CASE("input check: more sizes than have room on the stack") {
  std::vector<TensorSpec> specs;
  std::vector<Tensor> right, wrong;
  for (int64_t i = 0; i < 100; ++i) {
    specs.push_back(spec({range(2, 200, "s" + std::to_string(i)), range(4, 400, "2*s" + std::to_string(i))}));
    right.push_back(tensor({i, 2 * i}));
    wrong.push_back(tensor({i, i == 90 ? 181 : 2 * i}));
  }
  const InputCheck check(specs, Device{}, true);
  CHECK(refusal(check, right) == "");
  CHECK(refusal(check, wrong) ==
        "input 90 (arg0_1): expected size 2*s90 = 180 at dimension 1, got 181, where s90 = 90 is dimension 0 of input "
        "90 (arg0_1) in [90, 181]");
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
