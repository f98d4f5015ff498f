#include "package_format/wrapper/wrapper_values.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The bounds of input x, of which a kernel makes these lines.
ValueBounds bounds(const std::string& lines, const std::string& call = "") {
  ModelSpec spec;
  const std::string kernel =
      "extern \"C\"  void  cpp_fused_one_0(const float* in_ptr0, const int64_t* in_ptr1,\n float* out_ptr0, "
      "const int64_t ks0);\n"
      "extern \"C\"  void  cpp_fused_one_0(const float* in_ptr0, const int64_t* in_ptr1,\n float* out_ptr0, "
      "const int64_t ks0)\n{\n    {\n" +
      lines + "    }\n}\n";
  const std::string text =
      constructor(15, {"y", "x"}, 1, {{.name = "table", .fqn = "table", .shape = {30, 4}, .stride = {4, 1}}},
                  specs(2)) +
      check(0, "y", "float32", {}) + check(1, "x", "int64", {}) + kernel +
      run_impl(
          "    auto y = std::move(inputs[0]);\n    auto x = std::move(inputs[1]);\n"
          "    [[maybe_unused]] auto& table = constants_->at(0);\n" +
          (call.empty() ? "    cpp_fused_one_0((const float*)(y.data_ptr()), (const int64_t*)(x.data_ptr()), "
                          "(float*)(buf0.data_ptr()), s77);\n"
                        : call));
  const WrapperSource source = read_wrapper_source(text, spec);
  find_values(source, std::vector<std::string_view>{kernel}, spec);
  CHECK_FALSE(spec.inputs[0].values.known());
  return spec.inputs[1].values;
}

std::string check_of(const std::string& name, const std::string& count) {
  return "AOTI_TORCH_CHECK((0 <= " + name + ") & (" + name + " < " + count + "), \"index out of bounds: 0 <= " + name +
         " < " + count + "\");\n";
}

const std::string kLoad = "auto tmp0 = in_ptr1[static_cast<int64_t>(x0)];\n";

void check_range(const ValueBounds& got, double low, double high) {
  CAPTURE(got.low);
  CAPTURE(got.high);
  CHECK(got.low == doctest::Approx(low));
  CHECK(got.high == doctest::Approx(high));
}

}  // namespace

TEST_CASE("wrapper values: an index of a table, also of one row") {
  check_range(bounds(kLoad + "auto tmp1 = tmp0;\nauto tmp2 = c10::convert<int64_t>(tmp1);\n" + check_of("tmp2", "1L")),
              0, 0);
  check_range(bounds(kLoad + check_of("tmp0", "100L") + check_of("tmp0", "32L")), 0, 31);
}

TEST_CASE("wrapper values: an index with an offset, and one that is counted from the end") {
  check_range(bounds(kLoad + "auto tmp1 = static_cast<int64_t>(2);\nauto tmp2 = int64_t(tmp0 - tmp1);\n" +
                     check_of("tmp2", "66L")),
              2, 67);
  check_range(bounds(kLoad + R"(auto tmp1 = 48L;
auto tmp2 = c10::convert<int64_t>(tmp1);
auto tmp3 = int64_t(static_cast<std::make_unsigned_t<int64_t>>(tmp0) + static_cast<std::make_unsigned_t<int64_t>>(tmp2));
auto tmp4 = tmp0 < 0;
auto tmp5 = tmp4 ? tmp3 : tmp0;
auto tmp6 = tmp5;
)" + check_of("tmp6", "48L")),
              0, 47);
}

TEST_CASE("wrapper values: a float that becomes an index") {
  check_range(bounds(kLoad + R"(auto tmp1 = static_cast<float>(255.0);
auto tmp2 = float(tmp0 * tmp1);
auto tmp3 = c10::convert<int64_t>(tmp2);
)" + check_of("tmp3", "256L")),
              0, 1);
  check_range(bounds(kLoad + "auto tmp1 = static_cast<float>(-10.0);\nauto tmp2 = decltype(tmp0)(tmp0 * tmp1);\n" +
                     check_of("tmp2", "11L")),
              -1, 0);
}

TEST_CASE("wrapper values: vectors of indices, which go through arrays") {
  check_range(
      bounds(
          R"(auto tmp0 = at::vec::VectorizedN<int64_t,2>::loadu(in_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(2L));
auto tmp1 = 3L;
auto tmp2 = c10::convert<int64_t>(tmp1);
auto tmp3 = at::vec::VectorizedN<int64_t,2>(tmp2);
auto tmp4 = tmp0 + tmp3;
auto tmp5 = static_cast<int64_t>(0);
auto tmp6 = at::vec::VectorizedN<int64_t,2>(tmp5);
auto tmp7 = at::vec::VecMask<int64_t,2>(tmp0 < tmp6);
auto tmp8 = decltype(tmp4)::blendv(tmp0, tmp4, inductor_vec_mask_cast<int64_t,2>(tmp7));
auto tmp9 =
[&]
{
    __at_align__ std::array<int64_t, 8> tmpbuf;
    tmp8.store(tmpbuf.data(), static_cast<int64_t>(2L));
    return tmpbuf;
    }
    ()
;
auto tmp10 =
[&]
{
    __at_align__ std::array<int64_t, 8> tmpbuf;
    for (long x1_inner = 0; x1_inner < static_cast<int64_t>(2L); x1_inner++)
    {
        tmpbuf[x1_inner] = static_cast<int64_t>(tmp9[x1_inner]);
    }
    return at::vec::VectorizedN<int64_t,2>::loadu(tmpbuf.data(), static_cast<int64_t>(2L));
    }
    ()
;
AOTI_TORCH_CHECK((at::vec::VecMask<int64_t,2>((at::vec::VectorizedN<int64_t,2>(0) <= tmp10) & (tmp10 < at::vec::VectorizedN<int64_t,2>(3L)))).all_masked(), "index out of bounds: 0 <= tmp10 < 3L");
)"),
      0, 2);
}

TEST_CASE("wrapper values: divisors are not zero") {
  CHECK(bounds(kLoad + "auto tmp1 = int64_t(7);\nauto tmp2 = tmp1 / tmp0;\n").not_zero);
  CHECK(bounds(kLoad + "auto tmp1 = int64_t(7);\nauto tmp2 = c10::div_floor_integer(tmp1, tmp0);\n").not_zero);
  CHECK(bounds(kLoad + "auto tmp1 = int64_t(7);\nauto tmp2 = tmp1 % tmp0;\n").not_zero);
  CHECK(bounds(kLoad + "auto tmp1 = at::vec::VectorizedN<int64_t,2>(tmp0);\nauto tmp2 = int64_t(7);\n"
                       "auto tmp3 = tmp2 / decltype(tmp1)::set(decltype(tmp1)(1), tmp1, static_cast<int64_t>(8));\n")
            .not_zero);
  CHECK_FALSE(bounds(kLoad + "auto tmp1 = int64_t(7);\nauto tmp2 = tmp0 / tmp1;\n").known());
}

TEST_CASE("wrapper values: a table that an operator reads by name") {
  check_range(
      bounds("", "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_embedding(table, x, -1L, 0, 0, &buf0_handle));\n"), 0,
      29);
}

TEST_CASE("wrapper values: what is not understood is not bounded") {
  for (const std::string& lines :
       {kLoad + check_of("tmp1", "3L"), kLoad + "auto tmp1 = std::abs(tmp0);\n" + check_of("tmp1", "3L"),
        kLoad + "auto tmp1 = in_ptr0[0];\nauto tmp2 = tmp0 + tmp1;\n" + check_of("tmp2", "3L"),
        kLoad + check_of("tmp0", "ks0"), kLoad + check_of("tmp0", "0L"),
        kLoad + check_of("tmp0", "99999999999999999999L"),
        std::string("auto tmp0 = other[0];\n") + check_of("tmp0", "3L"),
        std::string("auto tmp99999999 = in_ptr1[0];\n") + check_of("tmp99999999", "3L")}) {
    CAPTURE(lines);
    CHECK_FALSE(bounds(lines).known());
  }
}

TEST_CASE("wrapper values: hostile texts cost no more than their length") {
  std::string nested = kLoad + "auto tmp1 = ";
  for (int i = 0; i < 100000; ++i) nested += "(";
  CHECK_FALSE(bounds(nested + "tmp0;\n").known());
  std::string sums = kLoad + "auto tmp1 = tmp0";
  for (int i = 0; i < 100000; ++i) sums += " + tmp0";
  CHECK_FALSE(bounds(sums + ";\n" + check_of("tmp1", "3L")).known());
  std::string many = kLoad;
  for (int i = 0; i < 20000; ++i) many += "auto tmp1 = tmp0 ? tmp0 : (tmp0 + [&]);\n" + check_of("tmp1", "3L");
  bounds(many);
}

TEST_CASE("wrapper values: the nearest value that a model takes") {
  const ValueBounds none, table{.low = 2, .high = 5, .not_zero = false},
      divisor{.low = -kInfinity, .high = kInfinity, .not_zero = true};
  CHECK(none.nearest(7, true) == 7);
  CHECK(table.nearest(0, true) == 2);
  CHECK(table.nearest(9, true) == 5);
  CHECK(table.nearest(3.4, true) == 3);
  CHECK(table.nearest(std::numeric_limits<double>::quiet_NaN(), false) == 2);
  CHECK(divisor.nearest(0, true) == 1);
  CHECK(ValueBounds{.low = -4, .high = 0, .not_zero = true}.nearest(0, true) == -1);
  CHECK(ValueBounds{.low = 0.2, .high = 0.4}.nearest(1, true) == 0.4);
}
