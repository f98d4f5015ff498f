#include "src/tensor/elementwise.h"

#include <doctest/doctest.h>

#include "sconce/random.h"
#include "src/cpu/elementwise/elementwise_ops.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;
TEST_CASE("add_Tensor: dtypes, broadcasting, strides, alpha") {
  run_kernel("elementwise.cases", "add_Tensor", cpu::add_Tensor);
}
TEST_CASE("add_Scalar: a number of the floating category") {
  run_kernel("elementwise.cases", "add_Scalar", cpu::add_Scalar);
}
TEST_CASE("subtract_Tensor: dtypes, broadcasting, strides") {
  run_kernel("elementwise.cases", "subtract_Tensor", cpu::subtract_Tensor);
  const Tensor t = Tensor::empty(Ints{2}, DType::kBool);
  CHECK_THROWS_WITH_AS(cpu::subtract_Tensor(t, t, 1), doctest::Contains("with two bool tensors is not supported"),
                       Error);
}
TEST_CASE("mul_Tensor: every pair of dtypes, broadcasting, strides") {
  run_kernel("elementwise.cases", "mul_Tensor", cpu::mul_Tensor);
}
TEST_CASE("mul_Scalar: a number of the floating category") {
  run_kernel("elementwise.cases", "mul_Scalar", cpu::mul_Scalar);
}
TEST_CASE("pow_Tensor_Tensor: integers, floats, complex") {
  run_kernel("elementwise.cases", "pow_Tensor_Tensor", cpu::pow_Tensor_Tensor);
}
TEST_CASE("pow_Tensor_Scalar: exponents with a rule of their own, and others") {
  run_kernel("elementwise.cases", "pow_Tensor_Scalar", cpu::pow_Tensor_Scalar);
}
TEST_CASE("pow_Scalar: row-major results") { run_kernel("elementwise.cases", "pow_Scalar", cpu::pow_Scalar); }
TEST_CASE("abs: smallest integers, signed zeros, complex") { run_kernel("elementwise.cases", "abs", cpu::abs); }
TEST_CASE("angle: NaN, signs, integers, complex") { run_kernel("elementwise.cases", "angle", cpu::angle); }
TEST_CASE("gcd: zeros and smallest integers") { run_kernel("elementwise.cases", "gcd", cpu::gcd); }
TEST_CASE("polar: broadcasting, dtypes that must agree") { run_kernel("elementwise.cases", "polar", cpu::polar); }
TEST_CASE("amax: NaN, dimensions, strides") { run_kernel("elementwise.cases", "amax", cpu::amax); }
TEST_CASE("hann_window: lengths and dtypes") { run_kernel("elementwise.cases", "hann_window", cpu::hann_window); }
TEST_CASE("native_dropout: output and mask as PyTorch's stream") {
  run_cases("elementwise.cases", "native_dropout", [](Case& c) {
    manual_seed(static_cast<uint64_t>(c.integer(0)));
    return call_kernel(c, cpu::native_dropout, 1);
  });
}

TEST_CASE("elementwise: several threads give what one gives") {
  const int before = kernel_threads();
  const Tensor a = Tensor::empty(Ints{300, 501}, DType::kInt32);
  for (int64_t i = 0; i < a.numel(); ++i) a.data_as<int32_t>()[i] = static_cast<int32_t>(i * 2654435761u);
  const Tensor b = a.as_strided(Ints{501, 300}, Ints{1, 501}, 0), c = a.as_strided(Ints{501, 300}, Ints{300, 1}, 0);
  set_kernel_threads(1);
  const Tensor one = cpu::mul_Tensor(b, c);
  set_kernel_threads(3);
  const Tensor three = cpu::mul_Tensor(b, c);
  set_kernel_threads(before);
  REQUIRE(one.is_dense());
  CHECK(std::equal(one.data_as<int32_t>(), one.data_as<int32_t>() + one.numel(), three.data_as<int32_t>()));
}

TEST_CASE("type promotion: every pair of dtypes as torch.promote_types") {
  // In the order of kTypes; '.' where PyTorch refuses. Made with torch 2.15: torch.promote_types(a, b).
  constexpr DType kTypes[] = {
      DType::kUInt8,    DType::kInt8,       DType::kInt16,     DType::kInt32,     DType::kInt64,      DType::kFloat16,
      DType::kFloat32,  DType::kFloat64,    DType::kComplex32, DType::kComplex64, DType::kComplex128, DType::kBool,
      DType::kBFloat16, DType::kFloat8E5M2, DType::kUInt16,    DType::kUInt32,    DType::kUInt64};
  constexpr std::string_view kExpected[] = {
      "acchiefgjklaB....", "cbchiefgjklbB....", "ccchiefgjklcB....", "hhhhiefgjklhB....", "iiiiiefgjkliB....",
      "eeeeeefgjklef.eee", "fffffffgkklff.fff", "gggggggglllgg.ggg", "jjjjjjkljkljk....", "kkkkkkklkklkk....",
      "lllllllllllll....", "abchiefgjklmB....", "BBBBBffgkklBB.BBB", ".............E...", ".....efg....B.n..",
      ".....efg....B..o.", ".....efg....B...p"};
  constexpr std::string_view kNames = "abchiefgjklmBEnop";
  for (size_t a = 0; a < std::size(kTypes); ++a)
    for (size_t b = 0; b < std::size(kTypes); ++b) {
      CAPTURE(dtype_name(kTypes[a]));
      CAPTURE(dtype_name(kTypes[b]));
      if (kExpected[a][b] == '.')
        CHECK_THROWS_WITH_AS(promote_types(kTypes[a], kTypes[b]), doctest::Contains("is not supported"), Error);
      else
        CHECK(dtype_name(promote_types(kTypes[a], kTypes[b])) == dtype_name(kTypes[kNames.find(kExpected[a][b])]));
    }
}
