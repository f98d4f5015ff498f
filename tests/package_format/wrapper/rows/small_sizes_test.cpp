// Which sizes below a recorded minimum of 2 a model takes. torch.export lets x[1] through for a dimension that begins
// at 1: the code then reads a row that one row does not have.
#include "package_format/wrapper/rows/small_sizes.h"

#include <doctest/doctest.h>

#include <array>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/sizes/size_relations.h"
#include "tests/package_format/generated_source.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// A kernel that copies rows of 4 elements; ROWS: the loop's bound, or none; ELEMENT: what it reads.
std::string row_kernel(const std::string& rows, const std::string& element, const std::string& condition = "") {
  const std::string load = "in_ptr0[static_cast<int64_t>(" + element + ")]";
  const std::string value = condition.empty()
                                ? "            auto tmp9 = " + load + ";\n"
                                : "            auto tmp0 = x0;\n            auto tmp1 = c10::convert<int64_t>(tmp0);\n"
                                  "            auto tmp2 = static_cast<int64_t>(1L);\n            auto tmp3 = " +
                                      condition +
                                      ";\n"
                                      "            auto tmp4 = [&]\n            {\n                auto tmp5 = " +
                                      load +
                                      ";\n"
                                      "                return tmp5;\n            }\n            ;\n"
                                      "            auto tmp9 = tmp3 ? tmp4() : static_cast<decltype(tmp4())>(0.0);\n";
  return "extern \"C\"  void  cpp_fused_rows_0(const float* in_ptr0, float* out_ptr0, const int64_t ks0)\n{\n"
         "    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(" +
         rows +
         "); x0+=static_cast<int64_t>(1L))\n    {\n"
         "        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(4L); x1+=static_cast<int64_t>(1L))\n"
         "        {\n" +
         value + "            out_ptr0[static_cast<int64_t>(x1 + 4L*x0)] = tmp9;\n        }\n    }\n}\n";
}

const std::string kRun =
    "    cpp_fused_rows_0((const float*)(x.data_ptr()), (float*)(buf1.data_ptr()), s77);\n"
    "    output_handles[0] = buf1.release();\n";

// An input x of [s77, 4], of which the source records 2 or more rows; the result has `sizes`.
ModelSpec read(const std::string& kernels, const std::string& sizes, const std::string& run = kRun) {
  ModelSpec spec;
  spec.device_key = "cpu";
  const std::string text = constructor(15, {"x"}, 1, {}, specs(1)) +
                           check(0, "x", "float32", {"x_size[0] < 2", "x_size[0] > 64", "4 != x_size[1]"}) + kernels +
                           run_impl(R"(    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);
    auto x = std::move(inputs[0]);
    auto x_size = x.sizes();
    int64_t s77 = x_size[0];
    const int64_t sizes[] = {)" + sizes +
                                    R"(, 4L};
    static constexpr int64_t strides[] = {4L, 1L};
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, sizes, strides, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
)" + run);
  const WrapperSource source = read_wrapper_source(text, spec);
  const std::array texts{std::string_view(kernels)};
  rows::ParsedCode code(source, texts);
  find_small_sizes(code, spec);
  return spec;
}

// The smallest number of rows that the model takes.
int64_t least(const std::string& kernels, const std::string& sizes = "s77", const std::string& run = kRun) {
  const ModelSpec spec = read(kernels, sizes, run);
  return SizeRelations(spec.inputs).range({0, 0}).least;
}

}  // namespace

TEST_CASE("small sizes: code that goes over all rows takes one and none") {
  CHECK(least(row_kernel("ks0", "x1 + 4L*x0")) == 0);
  CHECK(read(row_kernel("ks0", "x1 + 4L*x0"), "s77").why_not_smaller == "");
}

TEST_CASE("small sizes: a row by its number needs that many rows") {
  CHECK(least(row_kernel("1L", "x1"), "1L") == 1);
  CHECK(least(row_kernel("1L", "4L + x1"), "1L") == 2);
  CHECK(read(row_kernel("1L", "4L + x1"), "1L").why_not_smaller ==
        "kernel cpp_fused_rows_0: 'x' is accessed outside of its elements");
  // From the end: x[-1], x[-2].
  CHECK(least(row_kernel("1L", "(-4L) + x1 + 4L*ks0"), "1L") == 1);
  CHECK(least(row_kernel("1L", "(-8L) + x1 + 4L*ks0"), "1L") == 2);
}

TEST_CASE("small sizes: a row by its number beside each row") {
  CHECK(least(row_kernel("ks0", "x1")) == 0);
  CHECK(least(row_kernel("ks0", "4L + x1")) == 2);
  CHECK(least(row_kernel("ks0 + (-1L)", "4L + x1 + 4L*x0"), "s77") <= 1);
}

TEST_CASE("small sizes: rows of which the length is a difference") {
  // As the results of a convolution: [s77, s9 - 2], of which rows are s9 * x0 - 2 * x0 apart.
  const std::string kernel =
      "extern \"C\"  void  cpp_fused_rows_0(float* out_ptr0, const int64_t ks0, const int64_t ks1)\n{\n"
      "    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))\n    "
      "{\n"
      "        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>((-2L) + ks1); "
      "x1+=static_cast<int64_t>(1L))\n        {\n"
      "            out_ptr0[static_cast<int64_t>(x1 + ks1*x0 + (-2L)*x0)] = static_cast<float>(0.0);\n        }\n    "
      "}\n}\n";
  ModelSpec spec;
  spec.device_key = "cpu";
  const std::string text = constructor(15, {"x"}, 1, {}, specs(1)) +
                           check(0, "x", "float32", {"x_size[0] < 2", "x_size[1] < 8"}) + kernel +
                           run_impl(R"(    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);
    auto x = std::move(inputs[0]);
    auto x_size = x.sizes();
    int64_t s77 = x_size[0];
    int64_t s9 = x_size[1];
    const int64_t sizes[] = {s77, (-2L) + s9};
    const int64_t strides[] = {(-2L) + s9, 1L};
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, sizes, strides, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    cpp_fused_rows_0((float*)(buf1.data_ptr()), s77, s9);
    output_handles[0] = buf1.release();
)");
  const WrapperSource source = read_wrapper_source(text, spec);
  const std::array texts{std::string_view(kernel)};
  rows::ParsedCode code(source, texts);
  find_small_sizes(code, spec);
  CHECK_MESSAGE(SizeRelations(spec.inputs).range({0, 0}).least <= 1, spec.why_not_smaller);
  CHECK(SizeRelations(spec.inputs).range({0, 1}).least == 8);
}

TEST_CASE("small sizes: conditions that code checks count") {
  CHECK(least(row_kernel("ks0", "(-4L) + x1 + 4L*x0", "tmp1 >= tmp2")) <= 1);
  CHECK(least(row_kernel("ks0", "4L + x1", "tmp1 >= tmp2")) <= 1);  // x0 >= 1, so that there are two rows
  CHECK(least(row_kernel("ks0", "4L + x1", "tmp1 < tmp2")) == 2);
}

TEST_CASE("small sizes: a view for an operator needs the rows that it takes") {
  const auto view = [](const std::string& offset) {
    return "    static constexpr int64_t one[] = {1L, 4L};\n"
           "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf1, wrap_with_raii_handle_if_needed("
           "reinterpret_tensor_wrapper(x, 2, one, strides, " +
           offset +
           ")), buf1));\n"
           "    output_handles[0] = buf1.release();\n";
  };
  CHECK(least("", "s77", view("0L")) == 1);
  CHECK(least("", "s77", view("4L")) == 2);
}

TEST_CASE("small sizes: a statement that such sizes do not reach refuses none") {
  // The second row beside each row but the last one: a single row has no such place.
  CHECK(least(row_kernel("ks0 + (-1L)", "4L + x1"), "s77") <= 1);
}

TEST_CASE("small sizes: code that is not understood takes what may have been declared") {
  std::string kernel = row_kernel("ks0", "x1 + 4L*x0");
  kernel.insert(kernel.find("auto tmp9"), "something_new(in_ptr0);\n            ");
  CHECK(least(kernel) == 0);
  // What was understood before it counts.
  CHECK(least(row_kernel("ks0", "4L + x1"), "s77", kRun + "    something_new(buf1);\n") == 2);
}

TEST_CASE("small sizes: a condition or a loop with an empty statement") {
  const std::string kernel = row_kernel("ks0", "x1 + 4L*x0");
  for (const std::string empty : {"if (s77 > 3L) ;", "if (s77 > 3L) ; else ;", "while (s77 > 3L) ;"}) {
    CAPTURE(empty);
    CHECK(least(kernel, "s77", "    " + empty + "\n" + kRun) == 0);
  }
  std::string looping = kernel;
  looping.insert(looping.find("auto tmp9"),
                 "for(int64_t x2=static_cast<int64_t>(0L); x2<static_cast<int64_t>(4L); x2++) ;\n");
  CHECK(least(looping) == 0);
}
