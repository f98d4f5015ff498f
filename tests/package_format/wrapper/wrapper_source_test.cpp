#include "package_format/wrapper/wrapper_source.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

struct Parsed {
  std::string text;
  ModelSpec spec;
  WrapperSource source;
};

Parsed parse(std::string text) {
  Parsed parsed{std::move(text), {}, {}};
  parsed.source = read_wrapper_source(parsed.text, parsed.spec);
  return parsed;
}

}  // namespace

TEST_CASE("wrapper source: constants in the forms of every version") {
  for (const int minor : {6, 7, 8, 10, 11, 15}) {
    const Parsed parsed = parse(constructor(minor, {"arg2_1"}, 2,
                                            {{"l_weight", "l.weight", "bfloat16", 896, {8, 3, 3, 3}, {27, 9, 3, 1}},
                                             {"n", "n", "int64", 64, {}, {}, "Buffer", false, 5},
                                             {"_FOLDED_CONST_x", "", "float32", 64, {0}, {1}, "FoldedConstant", true},
                                             {"_tensor_constant0", "k", "bool", 64, {2}, {1}, "TensorConstant"}},
                                            specs(1)) +
                                run_impl(""));
    CHECK(parsed.source.found);
    CHECK(parsed.source.include_weights);
    CHECK(parsed.spec.inputs.size() == 1);
    CHECK(parsed.spec.inputs[0].name == "arg2_1");
    CHECK(parsed.spec.outputs.size() == 2);
    CHECK(parsed.spec.outputs[1].name == "output1");
    REQUIRE(parsed.spec.constants.size() == 4);
    const ConstantSpec& weight = parsed.spec.constants[0];
    CHECK(weight.name == "l_weight");
    CHECK(weight.fqn == "l.weight");
    CHECK(weight.dtype == DType::kBFloat16);
    CHECK(weight.device.has_value() == (minor >= 11));
    CHECK(weight.data_size == 896);
    CHECK(weight.shape == std::vector<int64_t>{8, 3, 3, 3});
    CHECK(weight.strides == std::vector<int64_t>{27, 9, 3, 1});
    CHECK(weight.type == ConstantType::kParameter);
    CHECK(!weight.folded);
    CHECK(parsed.spec.constants[1].type == ConstantType::kBuffer);
    CHECK(parsed.spec.constants[1].shape.empty());
    CHECK(parsed.spec.constants[1].offset == 5);
    CHECK(parsed.spec.constants[2].folded);
    CHECK(parsed.spec.constants[2].fqn.empty());
    CHECK(parsed.spec.constants[3].type == ConstantType::kTensorConstant);
    CHECK(parsed.spec.march == "x86-64-v3");
    CHECK(parsed.spec.isa_flags == "avx2 fma");
  }
}

TEST_CASE("wrapper source: a oneDNN-packed constant keeps its metadata") {
  SourceConstant packed{"w", "w"};
  packed.more =
      "    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout__mkldnn);\n"
      "    constants_info_[0].opaque_metadata = {1L, 0L, 255L, 7L};\n";
  const Parsed parsed = parse(constructor(15, {}, 1, {packed}, specs(0)) + run_impl(""));
  CHECK(parsed.spec.constants[0].opaque);
  CHECK(parsed.spec.constants[0].opaque_metadata ==
        std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{255}, std::byte{7}});
}

// A convolution's weight [8, 3, 3, 3] as torch 2.6 writes it: 668 bytes, and strides of no meaning.
TEST_CASE("wrapper source: strides and 668 bytes of a weight that oneDNN packed for torch 2.6") {
  std::vector<std::byte> bytes(668);
  std::string list;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 37);
    list += std::to_string(std::to_integer<int>(bytes[i])) + "L, ";
  }
  list.resize(list.size() - 2);
  SourceConstant packed{"_frozen_param1", "_frozen_param1"};
  packed.more =
      "    constants_info_[0].data_size = 1728;\n"
      "    constants_info_[0].shape = {8, 3, 3, 3};\n"
      "    constants_info_[0].stride = {1, 0, 0, 0};\n"
      "    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout__mkldnn);\n"
      "    constants_info_[0].opaque_metadata = {" +
      list + "};\n";
  const Parsed parsed = parse(constructor(6, {}, 1, {packed}, specs(0)) + run_impl(""));
  const ConstantSpec& weight = parsed.spec.constants[0];
  CHECK(weight.opaque);
  CHECK(weight.opaque_metadata == bytes);
  CHECK(weight.shape == std::vector<int64_t>{8, 3, 3, 3});
  CHECK(weight.strides == std::vector<int64_t>{1, 0, 0, 0});
  CHECK(weight.data_size == 1728);
}

TEST_CASE("wrapper source: specs as raw, as escaped and as cut-up strings") {
  const std::string escaped = R"x(    in_spec_ = "[1, {\"type\": \"a\\\\b\"}]";)x";
  Parsed parsed = parse(constructor(7, {}, 0, {}, escaped + "\n    out_spec_ = \"[2]\";\n") + run_impl(""));
  CHECK(parsed.source.in_spec == R"([1, {"type": "a\\b"}])");
  CHECK(parsed.source.out_spec == "[2]");
  const std::string cut = "    in_spec_ =\n    R\"([1, )\"\n    R\"(2])\"\n    ;\n    out_spec_ = R\"(x)\";\n";
  parsed = parse(constructor(15, {"a"}, 1, {}, cut) + run_impl(""));
  CHECK(parsed.source.in_spec == "[1, 2]");
  CHECK(parsed.source.out_spec == "x");
  CHECK(parsed.spec.outputs[0].name == "output0");
}

TEST_CASE("wrapper source: checks of inputs") {
  const std::string checks =
      check(0, "arg1_1", "int64",
            {"4 != arg1_1_size[0]", "arg1_1_size[1] < 2", "arg1_1_size[1] > 64", "9 != arg1_1_stride[0]"}) +
      check(1, "arg1_10", "float8_e4m3fn", {"arg1_10_size[0] < 0", "1 != arg1_10_stride[0]"}, 1) +
      check(2, "arg2_1", "bool", {});
  const std::string one = "\nAOTI_NOINLINE static void __check_inputs_outputs(\n) {\n" + checks + "}\n";  // torch 2.7
  std::string many;                                                                                       // later
  many.append("\nAOTI_NOINLINE static void check_input_0(\n) {\n").append(checks).append("}\n");
  for (const std::string& text : {one, many}) {
    const Parsed parsed = parse(constructor(8, {"arg1_1", "arg1_10", "arg2_1"}, 0, {}, specs(3)) + text + run_impl(""));
    const TensorSpec& first = parsed.spec.inputs[0];
    CHECK(first.dtype == DType::kInt64);
    CHECK(first.device == Device{});
    CHECK(first.has_shape);
    REQUIRE(first.dims.size() == 2);
    CHECK(first.dims[0].is_static());
    CHECK(first.dims[0].min == 4);
    CHECK(first.dims[1].min == 2);
    CHECK(first.dims[1].max == 64);
    CHECK(first.strides == std::vector<std::optional<int64_t>>{9, std::nullopt});
    const TensorSpec& second = parsed.spec.inputs[1];
    CHECK(second.dtype == DType::kFloat8E4M3FN);
    CHECK(second.device == Device{DeviceType::kCuda, 0});
    CHECK(second.dims[0].min == 0);
    CHECK(second.dims[0].max == INT64_MAX);
    const TensorSpec& scalar = parsed.spec.inputs[2];
    CHECK(scalar.dtype == DType::kBool);
    CHECK(scalar.has_shape);
    CHECK(scalar.dims.empty());
  }
}

TEST_CASE("wrapper source: what torch 2.6 does not check is unknown") {
  const Parsed parsed = parse(constructor(6, {"arg0_1"}, 1, {}, specs(1)) + run_impl(""));
  CHECK(!parsed.spec.inputs[0].dtype);
  CHECK(!parsed.spec.inputs[0].has_shape);
  CHECK(!parsed.spec.inputs[0].device);
}

TEST_CASE("wrapper source: weights outside the library, and a source that is none") {
  CHECK(!parse(constructor(15, {}, 1, {}, specs(0), false) + run_impl("")).source.include_weights);
  const Parsed none = parse("int main() { return 0; }");
  CHECK(!none.source.found);
  CHECK(none.spec.inputs.empty());
}

TEST_CASE("wrapper source: hostile texts") {
  CHECK_THROWS_AS(parse("    : AOTInductorModelBase(9999999999, 1, 1, true) {\n}"), Error);
  CHECK_THROWS_AS(parse("    : AOTInductorModelBase(-1, 1, 1, true) {\n}"), Error);
  CHECK_THROWS_AS(parse("    : AOTInductorModelBase(x"), Error);
  const std::string base = "    : AOTInductorModelBase(1, 1, 1, true) {\n";
  for (const char* line : {"constants_info_[7].name = \"x\";", "constants_info_[-1].name = \"x\";",
                           "constants_info_[0].name = x;", "constants_info_[0].shape = {1, 2",
                           "constants_info_[0].shape = {99999999999999999999};", "constants_info_[0].data_size = -5;",
                           "constants_info_[0]", "inputs_info_[", "in_spec_ = R\"(", "out_spec_ = \"x"}) {
    const Parsed parsed = parse(base + line);
    CHECK(parsed.spec.constants.size() == 1);
    CHECK(parsed.spec.constants[0].shape.empty());
    CHECK(parsed.spec.constants[0].data_size == 0);
  }
  const Parsed wild =
      parse(base + "}\n" + check(0, "a", "nonsense", {"5 != a_size[999999]", "a_size[-1] < 2", "a_size[0"}) +
            check(3, "b", "float32", {"5 != b_size[0]"}) + run_impl(""));
  CHECK(!wild.spec.inputs[0].dtype);
  CHECK(wild.spec.inputs[0].dims.empty());
}

TEST_CASE("wrapper source: threads of the kernels") {
  CHECK(kernel_threads("#pragma omp parallel num_threads(16)\n#pragma omp parallel num_threads(4)") == 16);
  CHECK(kernel_threads("  int64_t num_thread = 8;\n  double x = (n + num_thread - 1) / num_thread;") == 8);
  CHECK(kernel_threads("#pragma omp simd") == 0);
  CHECK(kernel_threads("num_threads(") == 0);
}

TEST_CASE("wrapper source: a loop of the graph") {
  const std::string head = constructor(15, {"arg0_1"}, 1, {}, specs(1));
  CHECK_FALSE(parse("void kernel() { while (true) {} }\n" + head + run_impl("    auto buf0 = arg0_1;\n")).spec.loops);
  CHECK(parse(head + run_impl("    while (1) {\n    }\n")).spec.loops);
}
