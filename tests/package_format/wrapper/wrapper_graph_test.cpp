#include "package_format/wrapper/wrapper_graph.h"

#include <doctest/doctest.h>

#include "package_format/wrapper/wrapper_source.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

using Strides = std::vector<std::optional<int64_t>>;

std::string take(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text.append("    auto " + names[i] + " = std::move(inputs[" + std::to_string(i) + "]);\n");
  return text;
}

std::string empty(const std::string& name, int rank, const std::string& sizes, const std::string& strides,
                  const std::string& dtype = "float32") {
  return "    AtenTensorHandle " + name + "_handle;\n    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(" +
         std::to_string(rank) + ", " + sizes + ", " + strides + ", cached_torch_dtype_" + dtype +
         ", cached_torch_device_type_cpu, this->device_idx_, &" + name + "_handle));\n    RAIIAtenTensorHandle " +
         name + "(" + name + "_handle);\n";
}

ModelSpec parse(const std::vector<std::string>& inputs, int outputs, const std::string& checks, const std::string& body,
                const std::vector<SourceConstant>& constants = {}) {
  ModelSpec spec;
  const std::string text =
      constructor(15, inputs, outputs, constants, specs(inputs.size())) + "\n" + checks + run_impl(take(inputs) + body);
  read_wrapper_source(text, spec);
  return spec;
}

}  // namespace

TEST_CASE("wrapper graph: symbols, their aliases, and sizes made of them") {
  const ModelSpec spec = parse({"a", "b", "c"}, 1,
                               check(0, "a", "float32", {"a_size[0] < 2", "a_size[0] > 64", "8 != a_size[1]"}) +
                                   check(1, "b", "float32", {"b_size[0] < 2", "b_size[0] > 64"}) +
                                   check(2, "c", "float32", {"c_size[0] < 4"}),
                               R"(    auto a_size = a.sizes();
    int64_t s77 = a_size[0];
    int64_t s43 = s77;
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(b, {s43, }, {1L, }, "input"); }
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(c, {2L*s43, }, {1L, }, "input"); }
    const int64_t int_array_0[] = {s43, 8L, (-2L) + s43};
    const int64_t int_array_1[] = {8L*s43, 1L, 1L};
)" + empty("buf0", 3, "int_array_0", "int_array_1") +
                                   "    output_handles[0] = buf0.release();\n");
  CHECK(spec.inputs[0].dims[0].symbol == "s77");
  CHECK(spec.inputs[0].dims[1].symbol.empty());
  CHECK(spec.inputs[1].dims[0].symbol == "s77");
  CHECK(spec.inputs[2].dims[0].symbol == "2*s77");
  const TensorSpec& out = spec.outputs[0];
  CHECK(out.dtype == DType::kFloat32);
  CHECK(out.device == Device{});
  REQUIRE(out.dims.size() == 3);
  CHECK(out.dims[0].symbol == "s77");
  CHECK(out.dims[0].max == 64);
  CHECK(out.dims[1].min == 8);
  CHECK(out.dims[1].is_static());
  CHECK(out.dims[2].symbol == "(-2) + s77");
  CHECK(out.strides == Strides{std::nullopt, 1, 1});
}

TEST_CASE("wrapper graph: up to torch 2.12 equal sizes are known by their range, if that is unique") {
  const std::string same = check(0, "a", "float32", {"a_size[0] < 2", "a_size[0] > 64"}) +
                           check(1, "b", "float32", {"b_size[0] < 2", "b_size[0] > 64"});
  const std::string sizes = "    auto a_size = a.sizes();\n    int64_t s0 = a_size[0];\n";
  CHECK(parse({"a", "b"}, 0, same, sizes).inputs[1].dims[0].symbol == "s0");
  const std::string other = check(0, "a", "float32", {"a_size[0] < 2", "a_size[0] > 64"}) +
                            check(1, "b", "float32", {"b_size[0] < 4", "b_size[0] > 128"});
  CHECK(parse({"a", "b"}, 0, other, sizes).inputs[1].dims[0].symbol.empty());
  const std::string third = same + check(2, "c", "float32", {"c_size[0] < 2", "c_size[0] > 64"});
  CHECK(parse({"a", "b", "c"}, 0, third, sizes + "    auto c_size = c.sizes();\n    int64_t s1 = c_size[0];\n")
            .inputs[1]
            .dims[0]
            .symbol.empty());
}

TEST_CASE("wrapper graph: outputs through reuse, views, aliases and clones") {
  const ModelSpec spec = parse({"a"}, 8, check(0, "a", "int32", {"3 != a_size[0]", "1 != a_stride[0]"}),
                               R"(    [[maybe_unused]] auto& w = constants_->at(0);
    static constexpr int64_t int_array_0[] = {4L, 6L};
    static constexpr int64_t int_array_1[] = {6L, 1L};
    static constexpr int64_t int_array_2[] = {24L, };
    static constexpr int64_t int_array_3[] = {1L, };
    static constexpr int64_t *int_array_4=nullptr;
)" + empty("buf0", 2, "int_array_0", "int_array_1", "bfloat16") +
                                   R"(    auto buf1 = std::move(buf0);  // reuse
    auto buf2 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf1, 1, int_array_2, int_array_3, 0L)); buf1.reset();  // reuse
)" + empty("buf3", 0, "int_array_4", "int_array_4", "bool") +
                                   R"(    AtenTensorHandle buf4_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf2, &buf4_handle));
    RAIIAtenTensorHandle buf4(buf4_handle);
    RAIIAtenTensorHandle scalar_to_tensor_0 = scalar_to_tensor_handle(1L + 4L*s77);
    output_handles[0] = buf2.release();
    output_handles[1] = buf3.release();
    output_handles[2] = a.release();
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_clone(w, &output_handles[3]));
    output_handles[4] = output_handles[0];
    output_handles[5] = scalar_to_tensor_0.release();
    output_handles[7] = buf4.release();
)",
                               {{"w", "w", "float64", 64, {5}, {1}}});
  CHECK(spec.outputs[0].dtype == DType::kBFloat16);
  CHECK(spec.outputs[0].dims[0].min == 24);
  CHECK(spec.outputs[1].dtype == DType::kBool);
  CHECK(spec.outputs[1].has_shape);
  CHECK(spec.outputs[1].dims.empty());
  CHECK(spec.outputs[2].dtype == DType::kInt32);
  CHECK(spec.outputs[2].dims[0].min == 3);
  CHECK(spec.outputs[3].dtype == DType::kFloat64);
  CHECK(spec.outputs[3].dims[0].min == 5);
  CHECK(spec.outputs[4].dims[0].min == 24);
  CHECK(spec.outputs[5].dtype == DType::kInt64);
  CHECK(spec.outputs[5].dims.empty());
  CHECK(spec.outputs[6].none);
  CHECK(!spec.outputs[5].none);
  CHECK(spec.outputs[7].dims[0].min == 24);
}

TEST_CASE("wrapper graph: numbers have the type of their variable") {
  const ModelSpec spec = parse({}, 5, "", R"(    float zuf0_raw;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_float32(buf2, &zuf0_raw));
    auto zuf0 = zuf0_raw;
    RAIIAtenTensorHandle scalar_to_tensor_0 = scalar_to_tensor_handle(zuf0);
    RAIIAtenTensorHandle scalar_to_tensor_1 = scalar_to_tensor_handle(2.5);
    RAIIAtenTensorHandle scalar_to_tensor_2 = scalar_to_tensor_handle(u0 == 1L);
    RAIIAtenTensorHandle scalar_to_tensor_3 = scalar_to_tensor_handle(true);
    RAIIAtenTensorHandle scalar_to_tensor_4 = scalar_to_tensor_handle(5L);
    output_handles[0] = scalar_to_tensor_0.release();
    output_handles[1] = scalar_to_tensor_1.release();
    output_handles[2] = scalar_to_tensor_2.release();
    output_handles[3] = scalar_to_tensor_3.release();
    output_handles[4] = scalar_to_tensor_4.release();
)");
  CHECK(spec.outputs[0].dtype == DType::kFloat32);
  CHECK(spec.outputs[1].dtype == DType::kFloat64);
  CHECK(spec.outputs[2].dtype == DType::kBool);
  CHECK(spec.outputs[3].dtype == DType::kBool);
  CHECK(spec.outputs[4].dtype == DType::kInt64);
}

TEST_CASE("wrapper graph: results of operators, with and without an assertion") {
  const std::string operation = R"(    AtenTensorHandle buf3_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_topk(a, 2L, &buf3_handle, &buf4_handle));
    RAIIAtenTensorHandle buf3(buf3_handle);
    RAIIAtenTensorHandle buf4(buf4_handle);
)";
  const std::string asserted =
      "    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf3, {u0, 8L}, {8L, 1L}, "
      "\"torch.ops.aten.topk (x, \\\"y\\\")\", cached_torch_dtype_float16, \"torch.float16\"); }\n";
  const std::string end = "    output_handles[0] = buf3.release();\n    output_handles[1] = buf4.release();\n";
  ModelSpec spec = parse({"a"}, 2, check(0, "a", "float32", {"3 != a_size[0]"}), operation + asserted + end);
  CHECK(spec.outputs[0].dtype == DType::kFloat16);
  CHECK(spec.outputs[0].dims[0].symbol == "u0");
  CHECK(spec.outputs[0].dims[1].min == 8);
  CHECK(!spec.outputs[1].dtype);
  CHECK(!spec.outputs[1].has_shape);
  CHECK(spec.outputs[1].device == Device{});
  const std::string linear = R"(    AtenTensorHandle buf3_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__linear_pointwise(a, w, &temporary_reference(b.get()), "none", &buf3_handle));
    RAIIAtenTensorHandle buf3(buf3_handle);
)";
  spec = parse({"a"}, 1, check(0, "a", "bfloat16", {"3 != a_size[0]"}),
               linear + "    output_handles[0] = buf3.release();\n");
  CHECK(spec.outputs[0].dtype == DType::kBFloat16);
}

TEST_CASE("wrapper graph: after a condition only what both branches agree on is known") {
  const std::string body = R"(    static constexpr int64_t int_array_0[] = {2L, 20L};
    static constexpr int64_t int_array_1[] = {20L, 1L};
    static constexpr int64_t int_array_2[] = {7L, 20L};
    RAIIAtenTensorHandle buf1;
    if (flag) {
)" + empty("t", 2, "int_array_0", "int_array_1") +
                           "        buf1 = std::move(t);\n    } else {\n" +
                           empty("f", 2, "int_array_2", "int_array_1") +
                           "        buf1 = std::move(f);\n    }\n    output_handles[0] = buf1.release();\n";
  const TensorSpec out = parse({}, 1, "", body).outputs[0];
  CHECK(out.dtype == DType::kFloat32);
  REQUIRE(out.dims.size() == 2);
  CHECK(!out.dims[0].is_static());
  CHECK(out.dims[1].min == 20);
  CHECK(out.strides == Strides{20, 1});
}

TEST_CASE("wrapper graph: torch 2.6 records dtypes in the casts of kernels only") {
  ModelSpec spec;
  const std::string text =
      constructor(6, {"a", "b"}, 0, {}, specs(2)) +
      run_impl(take({"a", "b"}) +
               "    cpp_fused_add_0((const at::Half*)(a.data_ptr()), (int64_t*)(buf0.data_ptr()));\n");
  read_wrapper_source(text, spec);
  CHECK(spec.inputs[0].dtype == DType::kFloat16);
  CHECK(!spec.inputs[1].dtype);
}

TEST_CASE("wrapper graph: hostile bodies leave everything unknown") {
  for (const char* line :
       {"output_handles[5] = a.release();", "output_handles[-1] = a;", "output_handles[", "output_handles[0] = ;",
        "output_handles[0] = std::move(std::move(", "auto a = constants_->at(99);", "auto a = std::move(inputs[99]);",
        "int64_t s = a_size[9999];", "const int64_t x[] = {{{{;", "aoti_torch_empty_strided(",
        "assert_size_stride(a, {1}", "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_clone(a, &output_handles[77]));",
        "f((const float*)(", "(*)(a.data_ptr())", "auto x = reinterpret_tensor_wrapper(a, 1, {}, {});",
        "int64_t s1 = s1;", "buf = buf;"}) {
    const ModelSpec spec =
        parse({"a"}, 1, check(0, "a", "float32", {"a_size[0] < 2"}), std::string("    ").append(line).append("\n"));
    CHECK(spec.inputs[0].dims.size() == 1);
    CHECK(spec.inputs[0].dtype == DType::kFloat32);
    CHECK(!spec.outputs[0].has_shape);
  }
}
