#include "src/cpu/matmul/weight_only.h"

#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_weight_int8pack_mm: as PyTorch") {
  run_kernel("quantised.cases", "_weight_int8pack_mm", cpu::_weight_int8pack_mm);
}

TEST_CASE("_weight_int4pack_mm_cpu_tensor: packed for every instruction set") {
  run_cases("quantised.cases", "_weight_int4pack_mm_cpu_tensor", [](Case& c) {
    const int64_t columns = c.integer(0);
    const Int4PackingScope scope(columns == 64   ? Int4Packing::kColumns64
                                 : columns == 32 ? Int4Packing::kColumns32
                                                 : Int4Packing::kPairs);
    return call_kernel(c, cpu::_weight_int4pack_mm_cpu_tensor, 1);
  });
}

TEST_CASE("_weight_int4pack_mm_cpu_tensor: scopes nest") {
  const Int4Packing host = Int4PackingScope::current();
  {
    const Int4PackingScope outer(Int4Packing::kPairs);
    {
      const Int4PackingScope inner(Int4Packing::kColumns64);
      CHECK(Int4PackingScope::current() == Int4Packing::kColumns64);
    }
    CHECK(Int4PackingScope::current() == Int4Packing::kPairs);
  }
  CHECK(Int4PackingScope::current() == host);
}

TEST_CASE("_convert_weight_to_int4pack_for_cpu: what it packs is what the product reads") {
  for (const Int4Packing packing : {Int4Packing::kPairs, Int4Packing::kColumns32, Int4Packing::kColumns64})
    for (const int64_t n : {16, 48, 64, 80, 112}) {
      const Int4PackingScope scope(packing);
      constexpr int64_t kDepth = 32;
      const int64_t sizes[] = {n, kDepth}, square[] = {kDepth, kDepth}, table[] = {1, n, 2};
      Tensor weight = Tensor::empty(sizes, DType::kInt32), x = Tensor::empty(square, DType::kFloat32),
             scales = Tensor::empty(table, DType::kFloat32), group = Tensor::empty({}, DType::kInt64);
      *group.data_as<int64_t>() = kDepth;
      for (int64_t i = 0; i < weight.numel(); ++i) weight.data_as<int32_t>()[i] = static_cast<int32_t>(i * 7 % 31 % 16);
      for (int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = i % (kDepth + 1) == 0;
      for (int64_t j = 0; j < n; ++j) {
        scales.data_as<float>()[2 * j] = 1;
        scales.data_as<float>()[2 * j + 1] = 0;
      }
      const Tensor packed = cpu::_convert_weight_to_int4pack_for_cpu(weight, 1);
      const Tensor out = cpu::_weight_int4pack_mm_cpu_tensor(x, packed, group, scales);
      bool same = true;
      for (int64_t p = 0; p < kDepth; ++p)
        for (int64_t j = 0; j < n; ++j)
          same = same &&
                 out.data_as<float>()[p * n + j] == static_cast<float>(weight.data_as<int32_t>()[j * kDepth + p] - 8);
      CAPTURE(n);
      CHECK(same);
    }
}
