#include "src/ops/weight_only.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_weight_int8pack_mm: as PyTorch") {
  run_cases("quantised.cases", "_weight_int8pack_mm", [](Case& c) {
    return std::vector<Tensor>{cpu::_weight_int8pack_mm(c.tensor(0), c.tensor(1), c.tensor(2))};
  });
}

TEST_CASE("_weight_int4pack_mm_cpu_tensor: packed for every instruction set") {
  run_cases("quantised.cases", "_weight_int4pack_mm_cpu_tensor", [](Case& c) {
    const int64_t columns = c.integer(0);
    const Int4PackingScope scope(columns == 64   ? Int4Packing::kColumns64
                                 : columns == 32 ? Int4Packing::kColumns32
                                                 : Int4Packing::kPairs);
    return std::vector<Tensor>{cpu::_weight_int4pack_mm_cpu_tensor(c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4))};
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
