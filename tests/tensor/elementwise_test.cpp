#include "src/tensor/elementwise.h"

#include <doctest/doctest.h>

#include "sconce/random.h"
#include "src/cpu/elementwise/elementwise_ops.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;
using Results = std::vector<Tensor>;

namespace {
void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("elementwise.cases", op, call); }
}  // namespace

TEST_CASE("add_Tensor: dtypes, broadcasting, strides, alpha") {
  run("add_Tensor", [](Case& c) { return Results{cpu::add_Tensor(c.tensor(0), c.tensor(1), c.real(2))}; });
}
TEST_CASE("add_Scalar: a number of the floating category") {
  run("add_Scalar", [](Case& c) { return Results{cpu::add_Scalar(c.tensor(0), c.real(1), c.real(2))}; });
}
TEST_CASE("subtract_Tensor: dtypes, broadcasting, strides") {
  run("subtract_Tensor", [](Case& c) { return Results{cpu::subtract_Tensor(c.tensor(0), c.tensor(1), c.real(2))}; });
  const Tensor t = Tensor::empty(Ints{2}, DType::kBool);
  CHECK_THROWS_WITH_AS(cpu::subtract_Tensor(t, t, 1), doctest::Contains("with two bool tensors is not supported"),
                       Error);
}
TEST_CASE("mul_Tensor: every pair of dtypes, broadcasting, strides") {
  run("mul_Tensor", [](Case& c) { return Results{cpu::mul_Tensor(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("mul_Scalar: a number of the floating category") {
  run("mul_Scalar", [](Case& c) { return Results{cpu::mul_Scalar(c.tensor(0), c.real(1))}; });
}
TEST_CASE("pow_Tensor_Tensor: integers, floats, complex") {
  run("pow_Tensor_Tensor", [](Case& c) { return Results{cpu::pow_Tensor_Tensor(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("pow_Tensor_Scalar: exponents with a rule of their own, and others") {
  run("pow_Tensor_Scalar", [](Case& c) { return Results{cpu::pow_Tensor_Scalar(c.tensor(0), c.real(1))}; });
}
TEST_CASE("pow_Scalar: row-major results") {
  run("pow_Scalar", [](Case& c) { return Results{cpu::pow_Scalar(c.real(0), c.tensor(1))}; });
}
TEST_CASE("abs: smallest integers, signed zeros, complex") {
  run("abs", [](Case& c) { return Results{cpu::abs(c.tensor(0))}; });
}
TEST_CASE("angle: NaN, signs, integers, complex") {
  run("angle", [](Case& c) { return Results{cpu::angle(c.tensor(0))}; });
}
TEST_CASE("gcd: zeros and smallest integers") {
  run("gcd", [](Case& c) { return Results{cpu::gcd(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("polar: broadcasting, dtypes that must agree") {
  run("polar", [](Case& c) { return Results{cpu::polar(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("amax: NaN, dimensions, strides") {
  run("amax", [](Case& c) { return Results{cpu::amax(c.tensor(0), c.args[1].integers(), c.boolean(2))}; });
}
TEST_CASE("hann_window: lengths and dtypes") {
  run("hann_window", [](Case& c) {
    const auto dtype = c.args[1].none() ? std::nullopt : dtype_from_number(c.integer(1));
    return Results{cpu::hann_window(c.integer(0), dtype, std::nullopt, std::nullopt, std::nullopt)};
  });
}
TEST_CASE("native_dropout: output and mask as PyTorch's stream") {
  run("native_dropout", [](Case& c) {
    manual_seed(static_cast<uint64_t>(c.integer(0)));
    auto [out, mask] = cpu::native_dropout(c.tensor(1), c.real(2), c.args[3].optional<bool>());
    return Results{out, mask};
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
