#include <doctest/doctest.h>

#include <vector>

#include "src/cpu/onednn/onednn.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"
#include "tests/cpu/packed_weight.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

void run_pointwise(decltype(&cpu::_qconv_pointwise_tensor) kernel, bool constant) {
  run_cases("quantised.cases", "_qconv_pointwise_tensor", [&](Case& c) {
    c.tensor(3).storage()->set_immutable(constant);
    return call_kernel(c, kernel);
  });
}

}  // namespace

TEST_CASE("_qconv_pointwise_tensor: one to three dimensions, groups, activations and results of every kind") {
  for (const bool constant : {false, true}) run_pointwise(cpu::_qconv_pointwise_tensor, constant);
}

TEST_CASE("_qconv2d_pointwise_tensor: the older name") { run_pointwise(cpu::_qconv2d_pointwise_tensor, false); }

TEST_CASE("_qconv2d_pointwise_binary_tensor: the sum goes into the other tensor") {
  run_cases("quantised.cases", "_qconv2d_pointwise_binary_tensor", [](Case& c) {
    const std::vector<Tensor> results = call_kernel(c, cpu::_qconv2d_pointwise_binary_tensor);
    CHECK(results[0].data() == c.tensor(6).data());
    return results;
  });
}

TEST_CASE("_qconv_pointwise_tensor: a packed weight as a plain one, by the library and without it") {
  const Ints sizes{16, 8, 3, 3};
  Tensor w = Tensor::empty(sizes, DType::kInt8), x = Tensor::empty(Ints{2, 8, 9, 9}, DType::kUInt8);
  for (int64_t i = 0; i < w.numel(); ++i) w.data_as<int8_t>()[i] = static_cast<int8_t>(i * 37);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<uint8_t>()[i] = static_cast<uint8_t>(i * 53);
  const Packed packed = pack(w, sizes, {{4, 1}, {16, 0}}, 1);
  Tensor scale = Tensor::empty(Ints{1}, DType::kFloat32), zero = Tensor::empty(Ints{1}, DType::kInt64);
  *scale.data_as<float>() = 0.5f;
  *zero.data_as<int64_t>() = 9;
  const Ints one{1, 1};
  const auto run = [&](const Tensor& weight) {
    return cpu::_qconv_pointwise_tensor(x, scale, zero, weight, scale, Tensor(), nullptr, one, one, one, 1, 1, 0,
                                        DType::kFloat32, "none", {}, {});
  };
  onednn::testing_use(onednn::Use::kNever);
  const Tensor want = run(w);
  std::vector<Tensor> all{run(packed.tensor)};
  onednn::testing_use(onednn::Use::kAlways);
  all.push_back(run(packed.tensor));
  w.storage()->set_immutable(true);
  all.push_back(run(w));
  onednn::testing_use(onednn::Use::kByPolicy);
  for (const Tensor& got : all)
    for (int64_t i = 0; i < want.numel(); ++i) CHECK(got.data_as<float>()[i] == want.data_as<float>()[i]);
}

TEST_CASE("_qconv_pointwise_tensor: what is kept of a constant weight goes by values, not by where they lie") {
  const Ints sizes{16, 8, 1, 3};
  Tensor plain = Tensor::empty(sizes, DType::kInt8), constant = Tensor::empty(sizes, DType::kInt8);
  Tensor x = Tensor::empty(Ints{2, 8, 1, 9}, DType::kUInt8);
  for (int64_t i = 0; i < plain.numel(); ++i)
    plain.data_as<int8_t>()[i] = constant.data_as<int8_t>()[i] = static_cast<int8_t>(i * 37);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<uint8_t>()[i] = static_cast<uint8_t>(i * 53);
  constant.storage()->set_immutable(true);
  Tensor scale = Tensor::empty(Ints{1}, DType::kFloat32), zero = Tensor::empty(Ints{1}, DType::kInt64);
  *scale.data_as<float>() = 0.5f;
  const auto run = [&](const Tensor& input, const Tensor& weight) {
    const Ints ones(static_cast<size_t>(input.dim()) - 2, 1), zeros(ones.size(), 0);
    return cpu::_qconv_pointwise_tensor(input, scale, zero, weight, scale, Tensor(), nullptr, ones, zeros, ones, 1, 1,
                                        0, DType::kFloat32, "none", {}, {});
  };
  const Ints line{2, 8, 9}, line_weight{16, 8, 3};
  Ints strides(3);
  contiguous_strides(line, strides.data());
  const Tensor x1(x.storage(), DType::kUInt8, line, strides);
  contiguous_strides(line_weight, strides.data());
  const Tensor plain1(plain.storage(), DType::kInt8, line_weight, strides),
      constant1(constant.storage(), DType::kInt8, line_weight, strides);
  for (const auto use : {onednn::Use::kNever, onednn::Use::kAlways})
    for (const int64_t value : {9, 200, 0, 9}) {  // in turn at one address
      *zero.data_as<int64_t>() = value;
      onednn::testing_use(onednn::Use::kNever);
      const Tensor want = run(x, plain), want1 = run(x1, plain1);
      onednn::testing_use(use);
      const Tensor got = run(x, constant), got1 = run(x1, constant1);
      onednn::testing_use(onednn::Use::kByPolicy);
      REQUIRE(got.numel() == want.numel());
      REQUIRE(got1.numel() == want1.numel());
      for (int64_t i = 0; i < want.numel(); ++i) CHECK(got.data_as<float>()[i] == want.data_as<float>()[i]);
      for (int64_t i = 0; i < want1.numel(); ++i) CHECK(got1.data_as<float>()[i] == want1.data_as<float>()[i]);
    }
}
