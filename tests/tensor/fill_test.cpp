#include "src/tensor/fill.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/factory.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

TEST_CASE("fill__Scalar: as PyTorch fills") { run_kernel("copy.cases", "fill__Scalar", cpu::fill__Scalar); }

TEST_CASE("fill: integers that a double does not hold, complex values") {
  Tensor t = Tensor::empty(Ints{70}, DType::kInt64);
  fill(t, int64_t{9007199254740993});
  CHECK(t.data_as<int64_t>()[69] == 9007199254740993);
  zero(t);
  CHECK(t.data_as<int64_t>()[69] == 0);
  Tensor small = Tensor::empty(Ints{2}, DType::kInt8);
  CHECK_THROWS_AS(fill(small, int64_t{128}), Error);
  CHECK_THROWS_AS(fill(small, std::complex<double>(1, 1)), Error);
  Tensor c = Tensor::empty(Ints{2}, DType::kComplex64);
  fill(c, std::complex<double>(1, -2));
  CHECK(c.data_as<std::complex<float>>()[1] == std::complex<float>(1, -2));
}

TEST_CASE("_efficientzerotensor: dtypes") {
  run_cases("more_gradients.cases", "_efficientzerotensor", [](Case& c) {
    return std::vector<Tensor>{
        cpu::_efficientzerotensor(c.args[0].integers(), c.tensor(1).dtype(), std::nullopt, std::nullopt, std::nullopt)};
  });
}
