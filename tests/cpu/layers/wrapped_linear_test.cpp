#include "src/cpu/layers/wrapped_linear.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/error.h"
#include "sconce/float_types.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"
#include "tests/cpu/packed_weight.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_wrapped_quantized_linear_prepacked: as PyTorch") {
  run_cases("quantised.cases", "_wrapped_quantized_linear_prepacked", [](Case& c) {
    const Tensor packed = cpu::_wrapped_linear_prepack(c.tensor(3), c.tensor(4), c.tensor(5), c.tensor(6));
    return std::vector<Tensor>{cpu::_wrapped_quantized_linear_prepacked(c.tensor(0), c.tensor(1), c.tensor(2), packed,
                                                                        c.tensor(7), c.tensor(8), c.tensor(3).size(0))};
  });
}

TEST_CASE("wrapped_fbgemm_linear_fp16_weight: as PyTorch") {
  run_cases("quantised.cases", "wrapped_fbgemm_linear_fp16_weight", [](Case& c) {
    const Tensor packed = cpu::wrapped_fbgemm_pack_gemm_matrix_fp16(c.tensor(1));
    return std::vector<Tensor>{
        cpu::wrapped_fbgemm_linear_fp16_weight(c.tensor(0), packed, c.args[2].optional_tensor(), c.tensor(1).size(0))};
  });
}

TEST_CASE("linear_dynamic_fp16: a weight that oneDNN packed, against sums in double") {
  const int64_t m = 5, k = 19, n = 11;
  const auto value = [](int64_t i) { return static_cast<float>(i * 7 % 23 - 11) / 8; };
  Tensor plain = Tensor::empty(std::vector<int64_t>{k, n}, DType::kFloat16);
  for (int64_t i = 0; i < k * n; ++i) plain.data_as<Half>()[i] = Half(value(i));
  Tensor x = Tensor::empty(std::vector<int64_t>{1, m, k}, DType::kFloat32);
  for (int64_t i = 0; i < m * k; ++i) x.data_as<float>()[i] = value(3 * i);
  Tensor bias = Tensor::empty(std::vector<int64_t>{n}, DType::kFloat32);
  for (int64_t i = 0; i < n; ++i) bias.data_as<float>()[i] = value(5 * i);
  for (const bool constant : {false, true}) {
    const Packed packed = pack(plain, {k, n}, {{16, 1}, {2, 0}}, 1);
    packed.tensor.storage()->set_immutable(constant);
    for (const bool relu : {false, true})
      for (const Tensor* with : {static_cast<const Tensor*>(nullptr), static_cast<const Tensor*>(&bias)}) {
        const Tensor y = cpu::linear_dynamic_fp16(x, packed.tensor, with, relu);
        REQUIRE(y.dtype() == DType::kFloat32);
        REQUIRE(std::vector<int64_t>(y.sizes().begin(), y.sizes().end()) == std::vector<int64_t>{1, m, n});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double wanted = with ? value(5 * j) : 0;
            for (int64_t p = 0; p < k; ++p) wanted += static_cast<double>(value(3 * (i * k + p))) * value(p * n + j);
            if (relu && wanted < 0) wanted = 0;
            CHECK(y.data_as<float>()[i * n + j] == doctest::Approx(wanted).epsilon(1e-5));
          }
      }
    const Tensor half = Tensor::empty(std::vector<int64_t>{m, k}, DType::kFloat16);
    CHECK_THROWS_WITH_AS(cpu::linear_dynamic_fp16(half, packed.tensor, nullptr, false), doctest::Contains("Float"),
                         Error);
  }
  CHECK_THROWS_WITH_AS(cpu::linear_dynamic_fp16(x, plain, nullptr, false), doctest::Contains("packed by oneDNN"),
                       Error);
}

TEST_CASE("_wrapped_linear_prepack: what does not fit is refused") {
  const std::vector<int64_t> matrix{4, 6}, four{4}, one{1};
  Tensor w = Tensor::empty(matrix, DType::kFloat32), b = Tensor::empty(four, DType::kFloat32);
  Tensor s = Tensor::empty(one, DType::kFloat32);
  for (int64_t i = 0; i < 24; ++i) w.data_as<float>()[i] = 0;
  for (int64_t i = 0; i < 4; ++i) b.data_as<float>()[i] = 0;
  *s.data_as<float>() = 1;
  CHECK_THROWS_WITH_AS(cpu::_wrapped_linear_prepack(w, s, s, s), doctest::Contains("bias should have N elements: 4"),
                       Error);
  CHECK_THROWS_WITH_AS(cpu::_wrapped_linear_prepack(Tensor::empty(matrix, DType::kFloat64), s, s, b),
                       doctest::Contains("float32 matrix"), Error);
  const Tensor packed = cpu::_wrapped_linear_prepack(w, s, s, b);
  const auto run = [&](const Tensor& x, const Tensor& p, int64_t n) {
    return cpu::_wrapped_quantized_linear_prepacked(x, s, s, p, s, s, n);
  };
  CHECK_NOTHROW(run(Tensor::empty(std::vector<int64_t>{0, 6}, DType::kFloat32), packed, 4));
  CHECK_THROWS_WITH_AS(run(w, packed, 5), doctest::Contains("4 output channels, not 5"), Error);
  CHECK_THROWS_WITH_AS(run(Tensor::empty(matrix, DType::kFloat64), packed, 4), doctest::Contains("Float"), Error);
  CHECK_THROWS_WITH_AS(run(b, packed, 4), doctest::Contains("does not fit a weight of 6 columns"), Error);
}

TEST_CASE("wrapped_fbgemm_pack_gemm_matrix_fp16: bytes that were not packed are refused, whatever they say") {
  const std::vector<int64_t> matrix{4, 6};
  Tensor w = Tensor::empty(matrix, DType::kFloat32);
  for (int64_t i = 0; i < 24; ++i) w.data_as<float>()[i] = 1e9f;
  const Tensor packed = cpu::wrapped_fbgemm_pack_gemm_matrix_fp16(w);
  const Tensor y = cpu::wrapped_fbgemm_linear_fp16_weight(w, packed, nullptr, 4);
  CHECK(*y.data_as<float>() == doctest::Approx(6 * 1e9 * 65504));
  for (int64_t at = 0; at < 24; ++at) {
    packed.data_as<uint8_t>()[at] ^= 0x80;
    CHECK_THROWS_AS(cpu::wrapped_fbgemm_linear_fp16_weight(w, packed, nullptr, 4), Error);
    packed.data_as<uint8_t>()[at] ^= 0x80;
  }
  const std::vector<int64_t> few{10}, one{1};
  CHECK_THROWS_AS(cpu::wrapped_fbgemm_linear_fp16_weight(w, packed.as_strided(few, one, 0), nullptr, 4), Error);
}
