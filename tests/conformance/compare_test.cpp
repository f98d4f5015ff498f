// What the conformance program takes for equal, and what not. Element patterns are IEEE 754's and OCP's.
#include "tests/conformance/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace sconce::conformance {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
std::string values(DType dtype, std::vector<T> got, std::vector<T> want, double rtol = 0, double atol = 0) {
  const auto count = static_cast<int64_t>(got.size() * sizeof(T) / dtype_bytes(dtype));
  const int64_t sizes[] = {count}, strides[] = {1};
  const Tensor tensor = Tensor::from_blob(got.data(), sizes, strides, dtype);
  TensorCase expected;
  expected.dtype = dtype;
  expected.shape = {count};
  expected.stride = {1};
  return compare_values(tensor, expected, std::as_bytes(std::span(want)), rtol, atol);
}

}  // namespace

TEST_CASE("compare: tolerance is atol + rtol * |want|") {
  CHECK(values<float>(DType::kFloat32, {101}, {100}, 0.01, 0) == "");
  CHECK(values<float>(DType::kFloat32, {101.5f}, {100}, 0.01, 0) != "");
  CHECK(values<float>(DType::kFloat32, {101.5f}, {100}, 0.01, 0.5) == "");
  CHECK(values<double>(DType::kFloat64, {1e-9}, {0}, 1, 0) != "");
  CHECK(values<double>(DType::kFloat64, {-1e-9}, {0}, 0, 1e-8) == "");
}

TEST_CASE("compare: NaN equals NaN only, infinities equal themselves only") {
  CHECK(values<float>(DType::kFloat32, {kNan, kInf, -kInf}, {kNan, kInf, -kInf}) == "");
  CHECK(values<float>(DType::kFloat32, {kNan}, {1}, 10, 10) != "");
  CHECK(values<float>(DType::kFloat32, {1}, {kNan}, 10, 10) != "");
  CHECK(values<float>(DType::kFloat32, {kInf}, {-kInf}, 10, 10) != "");
  CHECK(values<float>(DType::kFloat32, {1}, {kInf}, 10, 10) != "");
  CHECK(values<float>(DType::kComplex64, {kNan, 1}, {2, kNan}) == "");
  CHECK(values<float>(DType::kComplex64, {1, 2}, {1, 2.5f}, 0, 0.1) != "");
}

TEST_CASE("compare: integers and bools are exact whatever the tolerance") {
  CHECK(values<int64_t>(DType::kInt64, {int64_t{1} << 60}, {int64_t{1} << 60}) == "");
  CHECK(values<int64_t>(DType::kInt64, {(int64_t{1} << 60) + 1}, {int64_t{1} << 60}, 1, 1) != "");
  CHECK(values<uint8_t>(DType::kBool, {1}, {0}, 1, 1) != "");
}

TEST_CASE("compare: narrow floats by value") {
  // 1.0 against 1.0 + one unit in the last place.
  CHECK(values<uint16_t>(DType::kFloat16, {0x3c01}, {0x3c00}, 0.001, 0) == "");
  CHECK(values<uint16_t>(DType::kFloat16, {0x3c01}, {0x3c00}, 0.0009, 0) != "");
  CHECK(values<uint16_t>(DType::kFloat16, {0x0001}, {0}, 0, 6e-8) == "");  // smallest subnormal
  CHECK(values<uint16_t>(DType::kFloat16, {0x0001}, {0}, 0, 5e-8) != "");
  CHECK(values<uint16_t>(DType::kFloat16, {0x7c00}, {0x7c00}) == "");
  CHECK(values<uint16_t>(DType::kFloat16, {0x7e00}, {0x7c01}) == "");  // two NaN
  CHECK(values<uint16_t>(DType::kBFloat16, {0x3f81}, {0x3f80}, 0.008, 0) == "");
  CHECK(values<uint16_t>(DType::kBFloat16, {0x3f81}, {0x3f80}, 0.007, 0) != "");
  CHECK(values<uint8_t>(DType::kFloat8E4M3FN, {0x39}, {0x38}, 0.125, 0) == "");  // 1.125, 1
  CHECK(values<uint8_t>(DType::kFloat8E4M3FN, {0x39}, {0x38}, 0.12, 0) != "");
  CHECK(values<uint8_t>(DType::kFloat8E4M3FN, {0x7f}, {0xff}) == "");             // NaN
  CHECK(values<uint8_t>(DType::kFloat8E4M3FN, {0x7e}, {0x78}, 0.75, 0) == "");    // 448, 256: no infinities
  CHECK(values<uint8_t>(DType::kFloat8E5M2, {0x3d}, {0x3c}, 0.25, 0) == "");      // 1.25, 1
  CHECK(values<uint8_t>(DType::kFloat8E5M2, {0x7c}, {0x7b}, 1, 0) != "");         // infinity
  CHECK(values<uint8_t>(DType::kFloat8E4M3FNUZ, {0x40}, {0x41}, 0.12, 0) == "");  // 1, 1.125
  CHECK(values<uint8_t>(DType::kFloat8E4M3FNUZ, {0x80}, {0x80}) == "");           // NaN
  CHECK(values<uint8_t>(DType::kFloat8E5M2FNUZ, {0x80}, {0x00}, 1, 1) != "");
}

TEST_CASE("compare: the worst element is named, strides are followed") {
  std::vector<float> got = {0, 3, 1, 4, 2, 9}, want = {0, 1, 2, 3, 4, 5};
  const int64_t sizes[] = {2, 3}, strides[] = {1, 2};
  const Tensor tensor = Tensor::from_blob(got.data(), sizes, strides, DType::kFloat32);
  TensorCase expected;
  expected.shape = {2, 3};
  expected.stride = {3, 1};
  const std::string text = compare_values(tensor, expected, std::as_bytes(std::span(want)), 0, 0);
  CHECK(text == "1 of 6 elements of float32 [2, 3] differ, worst at [1, 2]: got 9, expected 5 (rtol 0, atol 0)");
  expected.atol = 4;
  CHECK(compare_values(tensor, expected, std::as_bytes(std::span(want)), 0, 0) == "");
}

TEST_CASE("compare: bits tell zeros and NaN apart") {
  std::vector<float> got = {-0.0f}, want = {0.0f};
  const int64_t sizes[] = {1}, strides[] = {1};
  const Tensor tensor = Tensor::from_blob(got.data(), sizes, strides, DType::kFloat32);
  TensorCase expected;
  expected.shape = {1};
  expected.stride = {1};
  CHECK(compare_values(tensor, expected, std::as_bytes(std::span(want)), 0, 0) == "");
  CHECK(compare_bits(tensor, expected, std::as_bytes(std::span(want))) != "");
  CHECK(compare_bits(tensor, expected, std::as_bytes(std::span(got))) == "");
}

TEST_CASE("compare: dtype, shape, strides") {
  const int64_t sizes[] = {2, 3};
  const Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
  TensorCase expected;
  expected.shape = {2, 3};
  expected.stride = {3, 1};
  CHECK(compare_meta(tensor, expected) == "");
  expected.stride = {1, 2};
  CHECK(compare_meta(tensor, expected) == "got strides [3, 1], expected [1, 2] for shape [2, 3]");
  expected.shape = {2, 3, 1};
  CHECK(compare_meta(tensor, expected) == "got shape [2, 3], expected [2, 3, 1]");
  expected.dtype = DType::kInt32;
  CHECK(compare_meta(tensor, expected) == "got float32, expected int32");
  CHECK(compare_meta(Tensor(), expected) == "got None, expected a tensor");
}

}  // namespace sconce::conformance
