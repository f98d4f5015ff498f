#include "src/cpu/layers/qlinear.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"
#include "tests/cpu/packed_weight.h"

using namespace sconce;
using Ints = std::vector<int64_t>;

namespace {

struct Case {
  int64_t m = 5, k = 33, n = 300;
  DType x = DType::kUInt8;
  bool per_channel = true, weight_zero = false, relu = false;
};

// Compares with a loop in double precision.
void check(const Case& c, DType out_dtype, double output_scale, int64_t output_zero) {
  std::mt19937 random(7);
  const bool is_signed = c.x == DType::kInt8;
  Tensor x = Tensor::empty(Ints{c.m, c.k}, c.x), w = Tensor::empty(Ints{c.k, c.n}, DType::kInt8);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<uint8_t>()[i] = static_cast<uint8_t>(random());
  for (int64_t i = 0; i < w.numel(); ++i) w.data_as<int8_t>()[i] = static_cast<int8_t>(random());
  const int64_t channels = c.per_channel ? c.n : 1;
  Tensor scales = Tensor::empty(Ints{channels}, DType::kFloat32), zeros = Tensor::empty(Ints{channels}, DType::kInt64);
  for (int64_t j = 0; j < channels; ++j) {
    scales.data_as<float>()[j] = 0.001f * static_cast<float>(1 + random() % 9);
    zeros.data_as<int64_t>()[j] = c.weight_zero ? static_cast<int64_t>(random() % 7) - 3 : 0;
  }
  Tensor bias = Tensor::empty(Ints{c.n}, DType::kFloat32);
  for (int64_t j = 0; j < c.n; ++j) bias.data_as<float>()[j] = 0.1f * static_cast<float>(j % 7);
  Tensor x_scale = Tensor::empty(Ints{}, DType::kFloat32), x_zero = Tensor::empty(Ints{}, DType::kInt32);
  *x_scale.data_as<float>() = 0.02f;
  *x_zero.data_as<int32_t>() = is_signed ? -3 : 72;

  const double* none[] = {nullptr};
  const Tensor y = cpu::_qlinear_pointwise_tensor(x, x_scale, x_zero, w, scales, zeros, &bias, output_scale,
                                                  output_zero, out_dtype, c.relu ? "relu" : "none", none, "");
  REQUIRE(y.dtype() == out_dtype);
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < c.k; ++l) {
        const double a = is_signed ? x.data_as<int8_t>()[i * c.k + l] : x.data_as<uint8_t>()[i * c.k + l];
        sum += (a - *x_zero.data_as<int32_t>()) * w.data_as<int8_t>()[l * c.n + j];  // PyTorch ignores w's zero points
      }
      double want = sum * 0.02f * scales.data_as<float>()[c.per_channel ? j : 0] + bias.data_as<float>()[j];
      if (c.relu) want = std::max(want, 0.0);
      const int64_t at = i * c.n + j;
      if (out_dtype == DType::kFloat32) {
        CHECK(y.data_as<float>()[at] == doctest::Approx(want).epsilon(1e-5));
      } else {
        const bool u8 = out_dtype == DType::kUInt8;
        const double exact = want / output_scale;
        const double clamped =
            std::clamp(std::nearbyint(exact) + static_cast<double>(output_zero), u8 ? 0.0 : -128.0, u8 ? 255.0 : 127.0);
        const double got = u8 ? y.data_as<uint8_t>()[at] : y.data_as<int8_t>()[at];
        // In float32, a value half way between two integers may be rounded to either.
        CHECK(std::abs(got - clamped) <= (std::abs(exact - std::floor(exact) - 0.5) < 1e-3 ? 1 : 0));
      }
    }
}

}  // namespace

TEST_CASE("_qlinear_pointwise_tensor: zero points, scales, bias, activation and results of every kind") {
  check({}, DType::kFloat32, 1, 0);
  check({.x = DType::kInt8, .relu = true}, DType::kFloat32, 1, 0);
  check({.per_channel = false, .weight_zero = true}, DType::kFloat32, 1, 0);
  check({.weight_zero = true}, DType::kUInt8, 0.05, 128);
  check({.m = 1, .k = 1, .n = 1}, DType::kInt8, 0.01, -3);
}

namespace {

Tensor one_number(double value) {
  Tensor t = Tensor::empty(Ints{1}, DType::kFloat32);
  *t.data_as<float>() = static_cast<float>(value);
  return t;
}
Tensor bytes(Ints sizes, DType dtype, const std::vector<int>& values) {
  Tensor t = Tensor::empty(sizes, dtype);
  for (size_t i = 0; i < values.size(); ++i) t.data_as<uint8_t>()[i] = static_cast<uint8_t>(values[i]);
  return t;
}

}  // namespace

TEST_CASE("_qlinear_pointwise_binary_tensor: what is added but not written has no scale or zero point, as in PyTorch") {
  const Tensor x = bytes({1, 2}, DType::kUInt8, {3, 5}), w = bytes({2, 1}, DType::kInt8, {2, 1}), one = one_number(1);
  const auto run = [&](std::string_view how) {
    Tensor other = bytes({1, 1}, DType::kUInt8, {100});
    const Tensor y = cpu::_qlinear_pointwise_binary_tensor(x, one, Tensor(), w, one, Tensor(), &other, nullptr, 1, 0,
                                                           DType::kUInt8, 0.5, 4, how, 1, "none", {}, "");
    return int{*y.data_as<uint8_t>()};
  };
  CHECK(run("add") == 3 * 2 + 5 + 100);
  CHECK(run("sum") == 3 * 2 + 5 + (100 - 4) / 2);
}

TEST_CASE("_qlinear_pointwise_tensor: a packed weight that was multiplied by half counts twice") {
  const Tensor x = bytes({1, 2}, DType::kUInt8, {3, 5}), w = bytes({2, 1}, DType::kInt8, {20, 10}), one = one_number(1);
  testing::Packed packed = testing::pack(w, {2, 1}, {}, 1);
  testing::put(packed.metadata, 640, uint64_t{2});
  testing::put(packed.metadata, 652, 0.5f);
  packed.tensor.storage()->set_opaque_metadata(packed.metadata);
  const Tensor y = cpu::_qlinear_pointwise_tensor(x, one, Tensor(), packed.tensor, one, Tensor(), nullptr, 1, 0,
                                                  DType::kFloat32, "none", {}, "");
  CHECK(*y.data_as<float>() == 2 * (3 * 20 + 5 * 10));
}

TEST_CASE("_qlinear_pointwise_tensor: what does not fit is refused") {
  const double* none[] = {nullptr};
  Tensor x = Tensor::empty(Ints{2, 4}, DType::kUInt8), w = Tensor::empty(Ints{5, 3}, DType::kInt8);
  Tensor one = Tensor::empty(Ints{1}, DType::kFloat32);
  *one.data_as<float>() = 1;
  const auto call = [&](const Tensor& input) {
    return cpu::_qlinear_pointwise_tensor(input, one, Tensor(), w, one, Tensor(), nullptr, 1, 0, DType::kFloat32,
                                          "none", none, "");
  };
  CHECK_THROWS_WITH_AS(call(x), doctest::Contains("does not fit a weight of 5 rows"), Error);
  CHECK_THROWS_AS(call(Tensor::empty(Ints{2, 5}, DType::kFloat32)), Error);
  CHECK(call(Tensor::empty(Ints{0, 5}, DType::kUInt8)).numel() == 0);
}

TEST_CASE("_qlinear_pointwise_tensor: as PyTorch") {
  testing::run_kernel("quantised.cases", "_qlinear_pointwise_tensor", cpu::_qlinear_pointwise_tensor);
}

TEST_CASE("_qlinear_pointwise_binary_tensor: sum into the other tensor, or added to it") {
  testing::run_cases("quantised.cases", "_qlinear_pointwise_binary_tensor", [](testing::Case& c) {
    const std::vector<Tensor> results = testing::call_kernel(c, cpu::_qlinear_pointwise_binary_tensor);
    if (c.text(13) == "sum") CHECK(results[0].data() == c.tensor(6).data());
    return results;
  });
}
