// Sources as PyTorch writes them are in rows/generated_rows_test.cpp; here: metadata, statements without a rule,
// hostile text.
#include "package_format/wrapper/rows/row_proof.h"

#include <doctest/doctest.h>

#include <array>

#include "package_format/wrapper/wrapper_source.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

constexpr const char* kKernels = R"(extern "C"  void  cpp_fused_add_0(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    {
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L*ks0); x0+=static_cast<int64_t>(8L))
        {
            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(8));
            tmp0.store(out_ptr0 + static_cast<int64_t>(x0));
        }
    }
}
extern "C"  void  cpp_fused_sum_1(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    float tmp_acc0 = 0;
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L*ks0); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        tmp_acc0 = tmp_acc0 + tmp0;
    }
    out_ptr0[static_cast<int64_t>(0L)] = static_cast<float>(tmp_acc0);
}
extern "C"  void  cpp_fused_scan_2(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(8L); x1+=static_cast<int64_t>(1L))
    {
        float tmp_acc0 = 0;
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))
        {
            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 8L*x0)];
            tmp_acc0 = tmp_acc0 + tmp0;
            out_ptr0[static_cast<int64_t>(x1 + 8L*x0)] = tmp_acc0;
        }
    }
}
extern "C"  void  cpp_fused_local_3(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    std::unique_ptr<float []> buf_local_buffer_data_0 = std::make_unique<float []>(8L);
    float* local_buffer_data_0 = buf_local_buffer_data_0.get();
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))
    {
        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(WRITTEN); x1+=static_cast<int64_t>(1L))
        {
            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 8L*x0)];
            local_buffer_data_0[static_cast<int64_t>(x1)] = tmp0;
        }
        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(8L); x1+=static_cast<int64_t>(1L))
        {
            auto tmp0 = local_buffer_data_0[static_cast<int64_t>(x1)];
            out_ptr0[static_cast<int64_t>(x1 + 8L*x0)] = tmp0;
        }
    }
}
)";

// A buffer "name" of these sizes.
std::string empty(const std::string& name, const std::string& sizes, const std::string& dtype = "float32") {
  return "    AtenTensorHandle " + name + "_handle;\n    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, " +
         sizes + ", strides, cached_torch_dtype_" + dtype + ", cached_torch_device_type_cpu, this->device_idx_, &" +
         name + "_handle));\n    RAIIAtenTensorHandle " + name + "(" + name + "_handle);\n";
}

std::string run(const std::string& kernel, const std::string& in, const std::string& out) {
  return "    cpp_fused_" + kernel + "((const float*)(" + in + ".data_ptr()), (float*)(" + out +
         ".data_ptr()), s77);\n";
}

const std::string kOutput = "    output_handles[0] = buf1.release();\n";

// An input x of [s77, 8]; lists rows and strides.
ModelSpec parse(const std::string& body, std::string kernels = kKernels,
                const std::map<std::string, std::string>& metadata = {}) {
  ModelSpec spec;
  spec.device_key = "cpu";
  spec.metadata = metadata;
  if (const size_t at = kernels.find("WRITTEN"); at != std::string::npos) kernels.replace(at, 7, "8L");
  const std::string text = constructor(15, {"x"}, 1, {}, specs(1)) +
                           check(0, "x", "float32", {"x_size[0] < 2", "8 != x_size[1]"}) + kernels +
                           run_impl(R"(    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);
    auto x = std::move(inputs[0]);
    auto x_size = x.sizes();
    int64_t s77 = x_size[0];
    const int64_t rows[] = {s77, 8L};
    static constexpr int64_t one[] = {1L, 1L};
    static constexpr int64_t strides[] = {8L, 1L};
)" + body);
  const WrapperSource source = read_wrapper_source(text, spec);
  const std::array texts{std::string_view(kernels)};
  rows::ParsedCode code(source, texts);
  prove_rows(code, spec);
  return spec;
}

RowProof proof(const std::string& body) { return parse(body).rows; }

const std::string kCopy = empty("buf1", "rows") + run("add_0", "x", "buf1");

}  // namespace

TEST_CASE("row proof: a kernel row by row is a proof") {
  const RowProof rows = proof(kCopy + kOutput);
  CHECK_MESSAGE(rows.independent(), rows.reason);
  CHECK(rows.by == RowProof::By::kSource);
  CHECK(rows.reason == "");
}

TEST_CASE("row proof: what sconce.export proved stands in the metadata") {
  const auto with = [](const std::string& json, const std::string& body) {
    return parse(body, kKernels, {{"sconce_rows", json}}).rows;
  };
  const std::string unknown = "    something_new(buf1);\n";
  CHECK(with(R"({"version":1,"independent":true})", unknown).independent());
  CHECK(with(R"({"version":1,"independent":true})", unknown).by == RowProof::By::kExport);
  const RowProof no =
      with(R"({"version":1,"independent":false,"reason":"rows meet","operator":"aten.cumsum.default","at":"m.py:3"})",
           unknown);
  CHECK_FALSE(no.independent());
  CHECK(no.reason == "rows meet, aten.cumsum.default, m.py:3");
  // The source may prove what the exported graph did not.
  CHECK(with(R"({"version":1,"independent":false,"reason":"no rule"})", kCopy + kOutput).independent());
  // Another version, or no JSON of that form, is no proof.
  for (const char* json :
       {R"({"version":2,"independent":true})", R"({"independent":true})", "true", "[]", "", "{", R"({"version":1})",
        R"({"version":1,"independent":"true"})", R"({"version":1,"independent":1})"}) {
    CAPTURE(json);
    CHECK_FALSE(with(json, unknown).independent());
    CHECK(with(json, unknown).reason != "");
  }
}

TEST_CASE("row proof: sums and scans over the rows") {
  const std::string sum = empty("buf0", "one") + run("sum_1", "x", "buf0");
  // No output is made of it.
  CHECK(proof(sum + kCopy + kOutput).independent());
  const RowProof made = proof(sum + empty("buf1", "rows") + run("add_0", "buf0", "buf1") + kOutput);
  CHECK(made.reason == "kernel cpp_fused_sum_1: values of several rows meet");
  CHECK_FALSE(proof(empty("buf1", "rows") + run("scan_2", "x", "buf1") + kOutput).independent());
}

TEST_CASE("row proof: an array that rows use one after the other") {
  const std::string body = empty("buf1", "rows") + run("local_3", "x", "buf1") + kOutput;
  CHECK(proof(body).independent());
  // A row reads an element that an earlier row has written.
  std::string kernels = kKernels;
  kernels.replace(kernels.find("WRITTEN"), 7, "7L");
  CHECK_FALSE(parse(body, kernels).rows.independent());
}

TEST_CASE("row proof: what has no rule proves nothing, and the reason has its text") {
  const auto reason = [](const std::string& statement) { return proof(kCopy + statement + kOutput).reason; };
  CHECK(reason("    something_new(buf1);\n").find("something_new(buf1);") != std::string::npos);
  CHECK(reason("    while (1) {\n    }\n").find("while (1)") != std::string::npos);
  CHECK(reason("    if (s77 > 3L) {\n    }\n").find("if (s77 > 3L)") != std::string::npos);
  CHECK(reason("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_new_op(buf1, buf1));\n").find("new_op") !=
        std::string::npos);
  CHECK(reason(
            "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_proxy_executor_call_function(proxy_executor, 0, 0, nullptr, 1, "
            "std::vector<AtenTensorHandle>{buf1}.data()));\n") != "");
  // An argument that is not understood is no absent tensor.
  CHECK(reason("    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf1, x, other(x)));\n") != "");
  CHECK(proof("").reason == "it has no outputs");
}

TEST_CASE("row proof: operators by name, over the rows and within them") {
  const auto along = [](const char* dim) {
    return proof("    AtenTensorHandle buf1_handle;\n    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_cumsum(x, " +
                 std::string(dim) +
                 ", nullptr, &buf1_handle));\n    RAIIAtenTensorHandle buf1(buf1_handle);\n"
                 "    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf1, {s77, 8L}, {8L, 1L}, "
                 "\"torch.ops.aten.cumsum.default\"); }\n" +
                 kOutput);
  };
  CHECK(along("1L").independent());
  CHECK(along("-1L").independent());
  for (const char* dim : {"0L", "-2L", "2L", "s77", "7L"}) CHECK_FALSE(along(dim).independent());
}

TEST_CASE("row proof: hostile text ends in bounded time") {
  const std::string nested(100000, '('), braces(100000, '{');
  for (const std::string& text : {"    auto buf1 = " + nested + ";\n", "    " + braces + "\n",
                                  "    int64_t s1 = " + std::string(50000, '-') + "1;\n", std::string("    f(\"\n")})
    CHECK_FALSE(proof(kCopy + text + kOutput).independent());
  // Loops within loops that each carry a value to the next iteration.
  std::string body = "    float tmp_acc0 = 0;\n", end;
  for (int i = 0; i < 60; ++i) {
    const std::string x = "x" + std::to_string(i), acc = "tmp_acc" + std::to_string(i + 1);
    body += "float " + acc + " = tmp_acc" + std::to_string(i) + ";\nfor(int64_t " + x + "=0L; " + x + "<8L; " + x +
            "+=1L)\n{\n" + acc + " = " + acc + " + in_ptr0[" + x + "];\n";
    end += "}\n";
  }
  const std::string kernel =
      "extern \"C\"  void  cpp_fused_deep_4(const float* in_ptr0, float* out_ptr0, const int64_t ks0)\n{\n" + body +
      end + "}\n";
  CHECK_FALSE(parse(empty("buf1", "rows") + run("deep_4", "x", "buf1") + kOutput, kernel).rows.independent());
}

TEST_CASE("row proof: the coarsest buffer") {
  CHECK(parse(empty("buf1", "rows") + kOutput).coarsest_buffer == std::nullopt);
  CHECK(parse(empty("buf0", "rows", "float16") + empty("buf1", "rows") + kOutput).coarsest_buffer == DType::kFloat16);
  CHECK(parse(empty("buf0", "rows", "bfloat16") + empty("buf1", "rows", "float16") + kOutput).coarsest_buffer ==
        DType::kBFloat16);
}
