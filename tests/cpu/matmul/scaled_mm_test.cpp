#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_scaled_mm: scales of a tensor and of rows, every dtype of the result") {
  run_kernel("quantised.cases", "_scaled_mm", cpu::_scaled_mm);
}

TEST_CASE("_scaled_mm_out: into rows or columns") {
  run_kernel("quantised.cases", "_scaled_mm_out", cpu::_scaled_mm_out);
}
