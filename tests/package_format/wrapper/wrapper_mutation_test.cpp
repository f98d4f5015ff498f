#include "package_format/wrapper/wrapper_mutation.h"

#include <doctest/doctest.h>

#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// Which of the constants w, b (parameters), n and m (buffers) the lines write.
std::string written(const std::string& lines, bool writable = true, const std::string& folding = "",
                    const std::string& before = "") {
  const std::string take =
      "    [[maybe_unused]] auto& w = constants_->at(0);\n    [[maybe_unused]] auto& b = constants_->at(1);\n"
      "    [[maybe_unused]] auto& n = constants_->at(2);\n    auto m = constants_->at(3);\n";
  SourceConstant w{"w", "w"}, b{"b", "b"}, n{"n", "n"}, m{"m", "m"};
  n.type = m.type = "Buffer";
  std::string text = before + constructor(15, {}, 0, {w, b, n, m}, specs(0)) + "\n";
  if (!folding.empty())
    text +=
        "void AOTInductorModel::_const_run_impl(\n) {\n" + take + folding + "} // AOTInductorModel::_const_run_impl\n";
  text += run_impl(take + lines);
  ModelSpec spec;
  const WrapperSource source = read_wrapper_source(text, spec);
  find_mutated(text, source, writable, spec);
  std::string names;
  for (const ConstantSpec& constant : spec.constants)
    if (constant.mutated) names += constant.name;
  return names;
}

}  // namespace

TEST_CASE("written constants: by a compiled kernel") {
  CHECK(written(
            "    cpp_fused_0((const float*)(w.data_ptr()), (const int64_t*)(n.data_ptr()), (float*)(buf0.data_ptr()), "
            "(int64_t*)(n.data_ptr()));\n") == "n");
  CHECK(
      written(
          "    cpp_fused_0((float*)(n.data_ptr()), (at::BFloat16*)(m.data_ptr()), (const float*)(b.data_ptr()));\n") ==
      "nm");
}

TEST_CASE("written constants: through views and handles") {
  CHECK(written("    auto v = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(n, 1, int_array_0, "
                "int_array_1, 0L));\n"
                "    cpp_fused_0((float*)(v.data_ptr()), (const float*)(m.data_ptr()));\n") == "n");
  CHECK(written("    AtenTensorHandle h_handle;\n"
                "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(m, &h_handle));\n"
                "    RAIIAtenTensorHandle h(h_handle);\n    cpp_fused_0((float*)(h.data_ptr()));\n") == "m");
}

TEST_CASE("written constants: through views that functions of the ABI make") {
  for (const char* function : {"cpu_view_dtype", "cpu_permute", "cpu_slice_Tensor", "view_as_real", "aten_narrow"}) {
    CAPTURE(function);
    CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_" + std::string(function) +
                  "(n, cached_torch_dtype_int32, &v_handle));\n    RAIIAtenTensorHandle v(v_handle);\n"
                  "    cpp_fused_0((int32_t*)(v.data_ptr()), (const float*)(m.data_ptr()));\n") == "n");
  }
  // What it makes is new: a fused step may write it.
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(n, w, &v_handle));\n"
                "    RAIIAtenTensorHandle v(v_handle);\n    cpp_fused_0((float*)(v.data_ptr()));\n"
                "    aoti_torch_zero_(m);\n") == "m");
}

TEST_CASE("written constants: by functions whose name ends with an overload") {
  for (const char* function : {"cpu_bernoulli__float", "cuda_bernoulli__Tensor", "aten_fill__Scalar",
                               "cuda__flash_attention_forward_no_dropout_inplace", "get_data_ptr"}) {
    CAPTURE(function);
    CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_" + std::string(function) + "(n, m, &h));\n") == "n");
  }
  // The namespace mkldnn, and operators whose name begins with an underscore, have none.
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mkldnn__convolution_pointwise(n, w, &h));\n"
                "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__addmm_activation(n, w, &h));\n"
                "    aoti_torch_zero_(m);\n") == "m");
}

TEST_CASE("written constants: by functions of the ABI") {
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(n, b, x, w, 1L, 1L));\n") == "n");
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(n, m, 0));\n") == "n");
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_tensor_copy_(n, m));\n") == "m");
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(m));\n") == "m");
  CHECK(
      written(
          "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_index_put_out(wrap_with_raii_handle_if_needed("
          "reinterpret_tensor_wrapper(n, 1, int_array_0, int_array_1, 0L)), std::array<AtenTensorHandle, 1>{m}.data(), "
          "1, w, 1));\n") == "n");
  CHECK(written(
            "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mkldnn__convolution_pointwise_binary_(n, m, w, &r));\n") ==
        "m");
  // Functions that make new tensors write none of their arguments, and something else writes.
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(n, w, &h));\n"
                "    cpp_fused_0((float*)(m.data_ptr()));\n") == "m");
}

TEST_CASE("written constants: by Triton kernels, whose parameters tell, and by code that does not") {
  const std::string launcher =
      "static inline void call_triton_poi_0(\n    const in_ptr0_type_& in_ptr0,\n    const out_ptr0_type_& out_ptr0,\n"
      "    int64_t xnumel,\n    const std::optional<std::string>& cubin_dir_ = std::nullopt\n){\n}\n";
  CHECK(written("    call_triton_poi_0(w, n, 1L, this->cubin_dir_);\n", true, "", launcher) == "n");
  CHECK(written("    call_add_kernel_0(w, m, 1L);\n", true, "",
                "static inline void call_add_kernel_0(\n    const a_type_& in_a,\n    const b_type_& b,\n    int64_t "
                "n\n){\n}\n") == "wm");
  CHECK(written("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_proxy_executor_call_function(proxy_executor, 0, 0, "
                "std::array<int64_t, 0>{}.data(), 2, std::array<AtenTensorHandle, 2>{n, buf0}.data()));\n") == "n");
}

TEST_CASE("written constants: a user's kernel writes to parameters of any name") {
  const auto launcher = [](const std::string& heuristics) {
    return "static inline void call_triton_increment_0(\n    const in_ptr0_type_& in_ptr0,\n    int64_t n\n){\n    /*\n"
           "    async_compile.triton('triton_increment', '''\n    @triton_heuristics." +
           heuristics +
           "(\n    ''')\n    */\n    launchKernel(kernels_.triton_increment_0, 1, 1, 1, 4, 0, args, stream_);\n}\n" +
           "static inline void call_triton_poi_1(\n    const in_ptr0_type_& in_ptr0,\n    const out_ptr0_type_& "
           "out_ptr0){\n" +
           "    /* @triton_heuristics.pointwise( */\n    launchKernel(kernels_.triton_poi_1, 1, 1, 1, 4, 0, args, "
           "stream_);\n}\n";
  };
  const std::string calls = "    call_triton_increment_0(w, 4L);\n    call_triton_poi_1(m, n);\n";
  CHECK(written(calls, true, "", launcher("user_autotune")) == "wn");
  CHECK(written(calls, true, "", launcher("pointwise")) == "n");
}

TEST_CASE("written constants: only looked for where weights are writable, except while constants are folded") {
  const std::string kernel = "    cpp_fused_0((float*)(n.data_ptr()));\n";
  CHECK(written(kernel, false).empty());
  CHECK(written("    n.reset();\n", false, kernel) == "n");
  CHECK(written("    cpp_fused_1((float*)(m.data_ptr()));\n", true, kernel) == "nm");
  // Writable, but no use writes: all that may be.
  CHECK(written("    cpp_fused_0((const float*)(n.data_ptr()));\n") == "nm");
}

TEST_CASE("written constants: where nothing says so, what compiled code may write") {
  const auto assumed = [](std::vector<ConstantSpec> constants, bool some) {
    std::vector<ConstantSpec*> all;
    for (ConstantSpec& constant : constants) all.push_back(&constant);
    assume_mutated(all, some);
    std::string names;
    for (const ConstantSpec& constant : constants) {
      CHECK(constant.assumed == constant.mutated);
      if (constant.mutated) names += constant.name;
    }
    return names;
  };
  const auto constant = [](const char* name, ConstantType type, bool folded = false, bool opaque = false) {
    ConstantSpec spec;
    spec.name = name;
    spec.type = type;
    spec.folded = folded;
    spec.opaque = opaque;
    return spec;
  };
  const ConstantSpec w = constant("w", ConstantType::kParameter), b = constant("b", ConstantType::kBuffer),
                     t = constant("t", ConstantType::kTensorConstant), u = constant("u", ConstantType::kUnknown),
                     f = constant("f", ConstantType::kFolded, true),
                     p = constant("p", ConstantType::kUnknown, false, true);
  for (const bool some : {false, true}) CHECK(assumed({w, b, t, u, f, p}, some) == "btu");
  CHECK(assumed({w, f, p}, false).empty());
  CHECK(assumed({w, f, p}, true) == "w");
}

TEST_CASE("written inputs: by what it does with them, not by looking at them") {
  const std::string launcher =
      "static inline void call_triton_poi_0(\n    const in_ptr0_type_& in_ptr0,\n    const out_ptr0_type_& out_ptr0,\n"
      "    int64_t xnumel,\n    int32_t device_idx_) {\n}\n";
  const auto inputs = [&](const std::string& lines, const std::string& taken = "    auto y = std::move(inputs[1]);\n") {
    ModelSpec spec;
    const std::string text = launcher + constructor(15, {"x", "y"}, 0, {}, specs(0)) + "\n" +
                             run_impl("    auto x = std::move(inputs[0]);\n" + taken + lines);
    const WrapperSource source = read_wrapper_source(text, spec);
    find_mutated(text, source, false, spec);
    std::string names;
    for (const TensorSpec& input : spec.inputs)
      if (input.may_be_written) names += input.name;
    return names;
  };
  CHECK(inputs("    auto x_size = x.sizes();\n    int64_t s0 = x_size[0];\n"
               "    if ((reinterpret_cast<std::uintptr_t>(x.data_ptr()) & (16 -1)) != 0) {\n"
               "        AtenTensorHandle x_aligned;\n        aoti_torch_clone_preserve_strides(x, &x_aligned);\n"
               "        x = std::move(RAIIAtenTensorHandle(x_aligned));\n    }\n"
               "    call_triton_poi_0(x, buf0, 20L, this->device_idx_);\n    x.reset();\n")
            .empty());
  CHECK(inputs("    call_triton_poi_0(y, x, 20L, this->device_idx_);\n") == "x");
  CHECK(inputs("    auto v = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(y, 1, a, b, 0L));\n"
               "    call_triton_poi_0(x, v, 20L, this->device_idx_);\n") == "y");
  CHECK(inputs("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(x, y, 0));\n") == "x");
  CHECK(inputs("    call_add_kernel_0(x, buf0);\n") == "x");  // a kernel of the user's
  CHECK(inputs("    output_handles[0] = x.release();\n").empty());
  CHECK(inputs("    cpp_fused_0((const float*)(x.data_ptr()), (const float*)(y.data_ptr()), (float*)(buf0.data_ptr()), "
               "s77);\n")
            .empty());
  CHECK(
      inputs("    cpp_fused_0((const float*)(x.data_ptr()), (const float*)(y.data_ptr()), (float*)(x.data_ptr()), s77);"
             "\n") == "x");
  CHECK(inputs("    auto w = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(y, 2, a, b, 0L));\n"
               "    cpp_fused_0((const float*)(x.data_ptr()), (float*)(w.data_ptr()));\n") == "y");
  CHECK(inputs("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, x, y, x, 1L, 1L));\n").empty());
  CHECK(inputs("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_bernoulli__float(y, 0.5, nullptr, &h));\n") == "y");
  CHECK(inputs("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_proxy_executor_call_function(proxy_executor, 0, 0, "
               "std::array<int64_t, 0>{}.data(), 2, std::array<AtenTensorHandle, 2>{y, buf0}.data()));\n") == "y");
  CHECK(inputs("    cpp_fused_0((const float*)(x.data_ptr()));\n", "") == "y");  // nothing is known of it
}
