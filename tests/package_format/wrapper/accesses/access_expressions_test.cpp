// Accesses that only a request's sizes decide: torch.export with Dim.AUTO keeps "len(y) == len(x) // 2" as a guard,
// which is in no package, and generated code then reads y as far as x is long.
#include "package_format/wrapper/accesses/access_expressions.h"

#include <doctest/doctest.h>

#include <array>

#include "package_format/wrapper/rows/small_sizes.h"
#include "package_format/wrapper/wrapper_source.h"
#include "sconce/sizes/size_relations.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// x of [s77, 3] and y of [s17, 3]; a kernel over `elements` places, of which each runs `body`.
ModelSpec read(const std::string& elements, const std::string& body, const std::string& rows) {
  const std::string kernel =
      "extern \"C\"  void  cpp_fused_add_0(const float* in_ptr0, const float* in_ptr1, float* out_ptr0, "
      "const int64_t ks0, const int64_t ks1)\n{\n"
      "    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(" +
      elements + "); x0+=static_cast<int64_t>(1L))\n    {\n" + body + "    }\n}\n";
  ModelSpec spec;
  spec.device_key = "cpu";
  const std::string text = constructor(15, {"x", "y"}, 1, {}, specs(2)) +
                           check(0, "x", "float32", {"x_size[0] < 2", "3 != x_size[1]"}) +
                           check(1, "y", "float32", {"y_size[0] < 2", "3 != y_size[1]"}) + kernel +
                           run_impl(R"(    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 2);
    auto x = std::move(inputs[0]);
    auto y = std::move(inputs[1]);
    auto x_size = x.sizes();
    int64_t s77 = x_size[0];
    auto y_size = y.sizes();
    int64_t s17 = y_size[0];
    const int64_t sizes[] = {)" + rows +
                                    R"(, 3L};
    static constexpr int64_t strides[] = {3L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, sizes, strides, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    cpp_fused_add_0((const float*)(x.data_ptr()), (const float*)(y.data_ptr()), (float*)(buf0.data_ptr()), s77, s17);
    output_handles[0] = buf0.release();
)");
  const WrapperSource source = read_wrapper_source(text, spec);
  const std::array kernels{std::string_view(kernel)};
  rows::ParsedCode code(source, kernels);
  find_small_sizes(code, spec);
  return spec;
}

const std::string kAdd =
    "        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];\n"
    "        auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];\n"
    "        auto tmp2 = tmp0 + tmp1;\n"
    "        out_ptr0[static_cast<int64_t>(x0)] = tmp2;\n";
const std::string kHalf = "c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(2L))";
const std::string kHalfRows = "c10::div_floor_integer(static_cast<int64_t>(s77), static_cast<int64_t>(2L))";

std::string refusal(const ModelSpec& spec, int64_t x, int64_t y) {
  const SizeRelations relations(spec.inputs, spec.bounds);
  const std::array<int64_t, 2> sizes{x, y};
  const auto violation = relations.violation(sizes, [&](size_t i) { return spec.inputs[i].name; });
  CHECK(relations.agrees(sizes) == !violation);
  return violation ? violation->text : "";
}

}  // namespace

TEST_CASE("access expressions: a size that only a guard ties to another") {
  const ModelSpec spec = read("3L*(" + kHalf + ")", kAdd, kHalfRows);
  REQUIRE(spec.bounds.size() == 1);
  CHECK(spec.bounds[0].access == "kernel cpp_fused_add_0: 'y'");
  for (int64_t x = 0; x < 20; ++x)
    for (int64_t y = 0; y < 12; ++y) CHECK_MESSAGE((refusal(spec, x, y) == "") == (y >= x / 2), x << " " << y);
  CHECK(refusal(spec, 8, 3) ==
        "these sizes do not go together: kernel cpp_fused_add_0: 'y' would be accessed at element 11 of 9, "
        "-1 + 3*(s77 // 2) of 3*s17, where s17 = 3 is dimension 0 of y, and s77 = 8 is dimension 0 of x");
}

TEST_CASE("access expressions: code that stays within its tensors for all sizes has none") {
  CHECK(read("3L*ks0", "        out_ptr0[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0)];\n", "s77")
            .bounds.empty());
}

TEST_CASE("access expressions: a result that is too small for what is written is a bound, too") {
  const ModelSpec spec = read("3L*ks0", kAdd, "s17");
  for (int64_t x = 0; x < 6; ++x)
    for (int64_t y = 0; y < 6; ++y) CHECK((refusal(spec, x, y) == "") == (x <= y));
}

TEST_CASE("access expressions: only an access that is made counts") {
  // The last half of x's places reads y.
  const std::string guarded =
      "        if (x0 >= static_cast<int64_t>(3L*ks1)) {\n"
      "            auto tmp1 = in_ptr1[static_cast<int64_t>(x0 + (-3L)*ks1)];\n"
      "            out_ptr0[static_cast<int64_t>(x0)] = tmp1;\n        }\n";
  const ModelSpec spec = read("3L*ks0", guarded, "s77");
  for (int64_t x = 0; x < 9; ++x)
    for (int64_t y = 0; y < 5; ++y) CHECK((refusal(spec, x, y) == "") == (x <= 2 * y));
  // What values decide is not known to be made.
  const std::string by_value =
      "        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];\n"
      "        if (tmp0 > static_cast<float>(0.0)) {\n"
      "            out_ptr0[static_cast<int64_t>(x0)] = in_ptr1[static_cast<int64_t>(x0)];\n        }\n";
  CHECK(refusal(read("3L*ks0", by_value, "s77"), 4, 2) == "");
}

TEST_CASE("access expressions: sizes are chosen so that each access lies within its tensor") {
  const ModelSpec spec = read("3L*(" + kHalf + ")", kAdd, kHalfRows);
  const SizeRelations relations(spec.inputs, spec.bounds);
  const auto chosen = [&](int64_t x, int64_t y) {
    return relations.sizes({},
                           [&](const std::string& symbol, SizeRelations::Range) { return symbol == "s77" ? x : y; });
  };
  CHECK(*chosen(8, 8) == std::vector<int64_t>{8, 8});
  CHECK(*chosen(64, 3) == std::vector<int64_t>{64, 48});
  // A size that the caller has set stays.
  const auto any = [](const std::string&, SizeRelations::Range) { return int64_t{64}; };
  CHECK(*relations.sizes({{"s17", 3}}, any) == std::vector<int64_t>{4, 3});
  CHECK(!relations.sizes({{"s17", 3}, {"s77", 8}}, any));
}
