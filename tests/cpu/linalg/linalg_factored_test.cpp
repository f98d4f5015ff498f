#include <doctest/doctest.h>

#include <vector>

#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

template <class F>
void run(const char* op, F&& f) {
  run_cases("factored.cases", op, f);
}

template <size_t N>
std::vector<Tensor> listed(const std::array<Tensor, N>& results) {
  return {results.begin(), results.end()};
}

}  // namespace

TEST_CASE("cholesky_inverse: as PyTorch") {
  run("cholesky_inverse", [](Case& c) { return std::vector{cpu::cholesky_inverse(c.tensor(0), c.boolean(1))}; });
}
TEST_CASE("cholesky_solve: as PyTorch") {
  run("cholesky_solve",
      [](Case& c) { return std::vector{cpu::cholesky_solve(c.tensor(0), c.tensor(1), c.boolean(2))}; });
}
TEST_CASE("geqrf: as PyTorch") {
  run("geqrf", [](Case& c) { return listed(cpu::geqrf(c.tensor(0))); });
}
TEST_CASE("ormqr: as PyTorch") {
  run("ormqr", [](Case& c) {
    return std::vector{cpu::ormqr(c.tensor(0), c.tensor(1), c.tensor(2), c.boolean(3), c.boolean(4))};
  });
}
TEST_CASE("lu_unpack: as PyTorch") {
  run("lu_unpack",
      [](Case& c) { return listed(cpu::lu_unpack(c.tensor(0), c.tensor(1), c.boolean(2), c.boolean(3))); });
}
TEST_CASE("triangular_solve: as PyTorch") {
  run("triangular_solve", [](Case& c) {
    return listed(cpu::triangular_solve(c.tensor(0), c.tensor(1), c.boolean(2), c.boolean(3), c.boolean(4)));
  });
}
