#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("cholesky_inverse: as PyTorch") { run_kernel("factored.cases", "cholesky_inverse", cpu::cholesky_inverse); }
TEST_CASE("cholesky_solve: as PyTorch") { run_kernel("factored.cases", "cholesky_solve", cpu::cholesky_solve); }
TEST_CASE("geqrf: as PyTorch") { run_kernel("factored.cases", "geqrf", cpu::geqrf); }
TEST_CASE("ormqr: as PyTorch") { run_kernel("factored.cases", "ormqr", cpu::ormqr); }
TEST_CASE("lu_unpack: as PyTorch") { run_kernel("factored.cases", "lu_unpack", cpu::lu_unpack); }
TEST_CASE("triangular_solve: as PyTorch") { run_kernel("factored.cases", "triangular_solve", cpu::triangular_solve); }
