#include "package_format/wrapper/wrapper_rows.h"

#include <doctest/doctest.h>

#include "package_format/wrapper/wrapper_source.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// A buffer "name" of these sizes.
std::string empty(const std::string& name, const std::string& sizes, const std::string& dtype = "float32") {
  return "    AtenTensorHandle " + name + "_handle;\n    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, " +
         sizes + ", int_array_9, cached_torch_dtype_" + dtype + ", cached_torch_device_type_cpu, this->device_idx_, &" +
         name + "_handle));\n    RAIIAtenTensorHandle " + name + "(" + name + "_handle);\n";
}

std::string in(const std::string& name) { return "(const float*)(" + name + ".data_ptr())"; }
std::string out(const std::string& name) { return "(float*)(" + name + ".data_ptr())"; }

// Two inputs x and y of [s77, 8] and a constant w; lists rows and fixed.
ModelSpec parse(const std::string& body, const std::string& second = "8 != y_size[1]") {
  ModelSpec spec;
  const std::string declarations = R"(extern "C"  void  cpp_fused_one_0(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0);
extern "C"  void  cpp_fused_one_0(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    {
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0));
        tmp0.store(out_ptr0 + static_cast<int64_t>(x0));
    }
}
extern "C"  void  cpp_fused_two_1(const float* in_ptr0, const float* in_ptr1, float* out_ptr0, const int64_t ks0)
{
    #pragma omp parallel
    {
        int tid = omp_get_thread_num();
        {
            #pragma omp for
            out_ptr0[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0)] + in_ptr1[static_cast<int64_t>(0L)];
        }
    }
}
extern "C"  void  cpp_fused_in_place_2(float* in_out_ptr0, const float* in_ptr0, const int64_t ks0)
{
    {
        auto tmp0 = in_out_ptr0[static_cast<int64_t>(x0)];
        in_out_ptr0[static_cast<int64_t>(x0)] = tmp0 + in_ptr0[static_cast<int64_t>(x0)];
    }
}
extern "C"  void  cpp_fused_apart_3(const float* in_ptr0, const float* in_ptr1, float* out_ptr0, float* out_ptr1)
{
    #pragma omp parallel
    {
        {
            out_ptr0[static_cast<int64_t>(x0)] = in_ptr1[static_cast<int64_t>(x0)];
        }
        #pragma omp single
        {
            {
                out_ptr1[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0)];
            }
        }
    }
}
extern "C"  void  cpp_fused_after_4(const float* in_ptr0, float* out_ptr0, float* out_ptr1)
{
    {
        out_ptr0[static_cast<int64_t>(0L)] = in_ptr0[static_cast<int64_t>(x0)];
    }
    {
        auto tmp0 = out_ptr0[static_cast<int64_t>(0L)];
        out_ptr1[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0)] * tmp0;
    }
}
template <typename in_ptr0_type_, typename out_ptr0_type_, typename kernels_type_>
static inline void call_triton_red_fused_4(
    const in_ptr0_type_& in_ptr0,
    const out_ptr0_type_& out_ptr0,
    int64_t xnumel,
    const std::optional<std::string>& cubin_dir_ = std::nullopt
){
    /*
    async_compile.triton('triton_red_fused_4', '''
    */
}
)";
  const std::string text = constructor(15, {"x", "y"}, 1, {{.name = "w", .fqn = "w"}}, specs(2)) +
                           check(0, "x", "float32", {"x_size[0] < 2", "8 != x_size[1]"}) +
                           check(1, "y", "float32", {"y_size[0] < 2", second}) + declarations +
                           run_impl(R"(    auto x = std::move(inputs[0]);
    auto y = std::move(inputs[1]);
    auto& w = constants_->at(0);
    auto x_size = x.sizes();
    int64_t s77 = x_size[0];
    int64_t s43 = s77;
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(y, {s43, 8L}, {8L, 1L}, "input"); }
    const int64_t rows[] = {s43, 8L};
    static constexpr int64_t fixed[] = {8L};
    static constexpr int64_t int_array_9[] = {1L};
)" + body);
  const WrapperSource source = read_wrapper_source(text, spec);
  find_joined_rows(source, std::vector<std::string_view>{declarations}, spec);
  return spec;
}

std::string joined(const std::string& body) { return parse(body).rows_joined; }

const std::string kOutput = "    output_handles[0] = buf1.release();\n";

}  // namespace

TEST_CASE("wrapper rows: a tensor of fixed size made of all rows, and outputs of it") {
  CHECK(joined(empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") + ", s77);\n" +
               empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf0") + ", " + out("buf1") +
               ", s77);\n" + kOutput) == "buf0");
  // In several steps, by other names.
  CHECK(joined(empty("buf0", "rows") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") + ", s77);\n" +
               empty("buf2", "fixed") + "    cpp_fused_one_0(" + in("buf0") + ", " + out("buf2") + ", s77);\n" +
               "    auto buf3 = std::move(buf2);  // reuse\n" + empty("buf4", "fixed") + "    cpp_fused_one_0(" +
               in("buf3") + ", " + out("buf4") + ", s77);\n" + empty("buf1", "rows") + "    cpp_fused_in_place_2(" +
               out("buf1") + ", " + in("buf4") + ", s77);\n" + kOutput) == "buf2");
  // In one kernel.
  CHECK(joined(empty("buf0", "fixed") + empty("buf1", "rows") + "    cpp_fused_after_4(" + in("x") + ", " +
               out("buf0") + ", " + out("buf1") + ", s77);\n" + kOutput) == "buf0");
}

TEST_CASE("wrapper rows: rows stay apart") {
  const std::string row =
      empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("y") + ", " + out("buf1") + ", s77);\n";
  CHECK(joined(row + kOutput) == "");
  // What is made of weights alone.
  CHECK(joined(empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("w") + ", " + out("buf0") + ", s77);\n" +
               empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf0") + ", " + out("buf1") +
               ", s77);\n" + kOutput) == "");
  // Joined, and no output is made of it: an assertion on the data.
  CHECK(joined(row + empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") + ", s77);\n" +
               "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__assert_async(buf0));\n" + kOutput) == "");
  // A kernel that makes something of the weights, too.
  CHECK(joined(empty("buf0", "fixed") + empty("buf2", "rows") + "    cpp_fused_apart_3(" + in("x") + ", " + in("w") +
               ", " + out("buf0") + ", " + out("buf2") + ", s77);\n" + empty("buf1", "rows") + "    cpp_fused_two_1(" +
               in("buf2") + ", " + in("buf0") + ", " + out("buf1") + ", s77);\n" + kOutput) == "");
  // Memory that was of fixed size, used again.
  CHECK(joined(empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") + ", s77);\n" +
               "    auto buf2 = std::move(buf0);\n    cpp_fused_one_0(" + in("w") + ", " + out("buf2") + ", s77);\n" +
               empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf2") + ", " + out("buf1") +
               ", s77);\n" + kOutput) == "");
  // Inputs of different batches: there is none.
  CHECK(parse(empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") + ", s77);\n" +
                  empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf0") + ", " + out("buf1") +
                  ", s77);\n" + kOutput,
              "5 != y_size[0]")
            .rows_joined == "");
}

TEST_CASE("wrapper rows: launchers of Triton and operators by name") {
  CHECK(joined(empty("buf0", "fixed") + "    call_triton_red_fused_4(x, buf0, 8L*s77, this->cubin_dir_);\n" +
               empty("buf1", "rows") + "    call_triton_red_fused_4(buf0, buf1, 8L*s77, this->cubin_dir_);\n" +
               kOutput) == "buf0");
  // x^T x: the same size for any number of rows.
  CHECK(joined(empty("buf0", "fixed") +
               "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf0, "
               "wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(x, 2, rows, rows, 0L)), x));\n" +
               empty("buf1", "rows") + "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf1, x, buf0));\n" +
               kOutput) == "buf0");
  CHECK(joined(empty("buf1", "rows") + "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf1, x, w));\n" +
               kOutput) == "");
  // An operator's result, whose shape is asserted.
  CHECK(joined("    AtenTensorHandle buf0_handle;\n"
               "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_max_dim(x, 0L, &buf0_handle));\n"
               "    RAIIAtenTensorHandle buf0(buf0_handle);\n"
               "    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf0, {8L}, {1L}, \"op\"); }\n" +
               empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf0") + ", " + out("buf1") +
               ", s77);\n" + kOutput) == "buf0");
}

TEST_CASE("wrapper rows: a condition on all rows") {
  const std::string read = empty("buf0", "fixed") + "    cpp_fused_one_0(" + in("x") + ", " + out("buf0") +
                           ", s77);\n    RAIIAtenTensorHandle buf1;\n    bool buf0_scalar;\n"
                           "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_bool(buf0, &buf0_scalar));\n";
  CHECK(joined(read + "    if (buf0_scalar) {\n        // subgraph: true_graph_0\n") == "buf0");
  CHECK(joined(read + "    if (buf0_scalar) {\n        throw std::runtime_error(\"assertion\");\n") == "");
}

TEST_CASE("wrapper rows: certain rows of the batch, and a view that has them all") {
  const auto view = [](const std::string& sizes) {
    return "    auto buf0 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(x, 1, " + sizes +
           ", int_array_9, 0L));\n" + empty("buf1", "rows") + "    cpp_fused_two_1(" + in("x") + ", " + in("buf0") +
           ", " + out("buf1") + ", s77);\n" + kOutput;
  };
  CHECK(joined(view("fixed")) == "buf0");
  CHECK(joined("    const int64_t flat[] = {8L*s77};\n" + view("flat")) == "");
}

TEST_CASE("wrapper rows: the coarsest buffer") {
  CHECK(parse(empty("buf1", "rows") + kOutput).coarsest_buffer == std::nullopt);
  CHECK(parse(empty("buf0", "rows", "float16") + empty("buf1", "rows") + kOutput).coarsest_buffer == DType::kFloat16);
  CHECK(parse(empty("buf0", "rows", "bfloat16") + empty("buf1", "rows", "float16") + kOutput).coarsest_buffer ==
        DType::kBFloat16);
}
