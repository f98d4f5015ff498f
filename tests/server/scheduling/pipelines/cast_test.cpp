#include "server/scheduling/pipelines/cast.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sconce/float_types.h"
#include "tests/errors.h"

namespace sconce::server::scheduling {
namespace {

template <class T>
Tensor tensor(DType dtype, std::vector<T> values) {
  const int64_t sizes[] = {static_cast<int64_t>(values.size())};
  Tensor made = Tensor::empty(sizes, dtype);
  std::copy(values.begin(), values.end(), made.data_as<T>());
  return made;
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  return std::vector<T>(tensor.data_as<T>(), tensor.data_as<T>() + tensor.numel());
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("cast: floats to integers truncate, and stop at the limits") {
  const Tensor from = tensor<double>(DType::kFloat64, {1.9, -1.9, 300, -300, 1e30, -1e30, kNan, kInf, -kInf, 0});
  CHECK(values<int8_t>(cast(from, DType::kInt8)) == std::vector<int8_t>{1, -1, 127, -128, 127, -128, 0, 127, -128, 0});
  CHECK(values<uint8_t>(cast(from, DType::kUInt8)) == std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 0, 255, 0, 0});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  CHECK(values<int64_t>(cast(from, DType::kInt64)) ==
        std::vector<int64_t>{1, -1, 300, -300, kMost, kLeast, 0, kMost, kLeast, 0});
  CHECK(values<bool>(cast(from, DType::kBool)) ==
        std::vector<bool>{true, true, true, true, true, true, true, true, true, false});
  // 2^31 - 1 is no float32: the nearest one is out of range.
  const Tensor single = tensor<float>(DType::kFloat32, {2147483648.0F, 2147483520.0F, -2147483648.0F});
  CHECK(values<int32_t>(cast(single, DType::kInt32)) == std::vector<int32_t>{2147483647, 2147483520, -2147483647 - 1});
}

TEST_CASE("cast: half types go through float32, integers wrap as in PyTorch") {
  const Tensor from = tensor<float>(DType::kFloat32, {1.0F, 1.0F / 3, 65504, 1e9F, -0.0F});
  const auto halves = values<Half>(cast(from, DType::kFloat16));
  CHECK(static_cast<float>(halves[0]) == 1.0F);
  CHECK(static_cast<float>(halves[1]) == 0.333251953125F);
  CHECK(static_cast<float>(halves[2]) == 65504.0F);
  CHECK(std::isinf(static_cast<float>(halves[3])));
  CHECK(std::signbit(static_cast<float>(halves[4])));
  CHECK(values<float>(cast(cast(from, DType::kBFloat16), DType::kFloat32))[1] == 0.333984375F);
  CHECK(values<int8_t>(cast(tensor<int64_t>(DType::kInt64, {128, -129, 256}), DType::kInt8)) ==
        std::vector<int8_t>{-128, 127, 0});
  CHECK(values<double>(cast(tensor<bool>(DType::kBool, {true, false}), DType::kFloat64)) == std::vector<double>{1, 0});
}

TEST_CASE("cast: strided tensors, empty ones, dtypes without a cast") {
  const Tensor rows = tensor<int32_t>(DType::kInt32, {0, 1, 2, 3, 4, 5});
  const int64_t sizes[] = {3, 2}, strides[] = {1, 3};
  CHECK(values<float>(cast(rows.as_strided(sizes, strides, 0), DType::kFloat32)) ==
        std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(cast(tensor<int32_t>(DType::kInt32, {}), DType::kFloat32).numel() == 0);
  CHECK(!is_castable(DType::kComplex64));
  CHECK(code_of([&] { cast(rows, DType::kComplex64); }) == ErrorCode::kUnsupported);
}

}  // namespace sconce::server::scheduling
