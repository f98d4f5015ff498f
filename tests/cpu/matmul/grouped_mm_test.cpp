#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_grouped_mm: groups of rows, steps and columns, and batches") {
  run_kernel("quantised.cases", "_grouped_mm", cpu::_grouped_mm);
}

TEST_CASE("_grouped_mm: offsets beyond the end and backwards cover what there is") {
  const std::vector<int64_t> a_sizes{8, 16}, b_sizes{3, 16, 8}, three{3};
  Tensor a = Tensor::empty(a_sizes, DType::kFloat32), b = Tensor::empty(b_sizes, DType::kFloat32);
  for (int64_t i = 0; i < a.numel(); ++i) a.data_as<float>()[i] = 1;
  for (int64_t i = 0; i < b.numel(); ++i) b.data_as<float>()[i] = static_cast<float>(1 + i / 128);
  Tensor offs = Tensor::empty(three, DType::kInt32);
  const auto first_column = [&](std::vector<int32_t> ends) {
    std::copy(ends.begin(), ends.end(), offs.data_as<int32_t>());
    const Tensor out = cpu::_grouped_mm(a, b, &offs, nullptr, std::nullopt);
    std::vector<float> values;
    for (int64_t i = 0; i < 8; ++i) values.push_back(out.data_as<float>()[i * out.stride(0)]);
    return values;
  };
  CHECK(first_column({2, 5, 12}) == std::vector<float>{16, 16, 32, 32, 32, 48, 48, 48});
  CHECK(first_column({2, 5, 7}) == std::vector<float>{16, 16, 32, 32, 32, 48, 48, 0});
  CHECK(first_column({5, 2, 8}) == std::vector<float>{16, 16, 48, 48, 48, 48, 48, 48});
}
