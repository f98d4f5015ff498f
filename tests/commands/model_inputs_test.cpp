#include "server/cli/model_inputs.h"

#include <doctest/doctest.h>

#include <cstring>

#include "sconce/error.h"
#include "sconce/tensor_files.h"
#include "tests/commands/scratch_folder.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::cli {
namespace {

// x: float32 [batch, 3], mask: bool [batch].
ModelSpec two_inputs() {
  ModelSpec spec;
  spec.inputs = {tensor_spec("arg0_1", DType::kFloat32, {{2, 64, "s0"}, {3, 3, ""}}),
                 tensor_spec("arg1_1", DType::kBool, {{2, 64, "s0"}})};
  return spec;
}

std::vector<float> floats(const Tensor& t) { return {t.data_as<float>(), t.data_as<float>() + t.numel()}; }

}  // namespace

TEST_CASE("inputs: random ones follow the signature and the seed") {
  InputOptions options;
  options.sizes = {"s0=5"};
  const std::vector<Tensor> a = make_inputs(two_inputs(), options), b = make_inputs(two_inputs(), options);
  REQUIRE(a.size() == 2);
  CHECK(to_string(a[0].sizes()) == "[5, 3]");
  CHECK(to_string(a[1].sizes()) == "[5]");
  CHECK(floats(a[0]) == floats(b[0]));
  for (int64_t i = 0; i < 5; ++i) CHECK(a[1].data_as<uint8_t>()[i] <= 1);
  options.seed = 1;
  CHECK(floats(make_inputs(two_inputs(), options)[0]) != floats(a[0]));
  options.sizes = {};
  CHECK(make_inputs(two_inputs(), options)[0].size(0) == 2);
}

TEST_CASE("inputs: random ones of every dtype"){
#define SCONCE_X(enumerator, number, bytes, name, safetensors, oip)    \
  {                                                                    \
    ModelSpec spec;                                                    \
    spec.inputs = {tensor_spec("x", DType::enumerator, {{7, 7, ""}})}; \
    const Tensor t = make_inputs(spec, {})[0];                         \
    CHECK(t.dtype() == DType::enumerator);                             \
    CHECK(t.numel() == 7);                                             \
  }
    SCONCE_DTYPES(SCONCE_X)
#undef SCONCE_X
}

TEST_CASE("inputs: JSON by name, and one value per file") {
  const ScratchFolder folder;
  InputOptions options;
  options.files = {folder.write("all.json", R"({"INPUT__1": [true, false], "arg0_1": [[1, 2, 3], [4, 5, 6.5]]})")};
  const std::vector<Tensor> both = make_inputs(two_inputs(), options);
  CHECK(floats(both[0]) == std::vector<float>{1, 2, 3, 4, 5, 6.5});
  CHECK(both[1].data_as<uint8_t>()[0] == 1);
  options.files = {"INPUT__0=" + folder.write("x.json", "[[1, 2, 3]]"), "arg1_1=" + folder.write("m.json", "[false]")};
  CHECK(to_string(make_inputs(two_inputs(), options)[0].sizes()) == "[1, 3]");
}

TEST_CASE("inputs: complex elements are pairs") {
  const ScratchFolder folder;
  ModelSpec spec;
  spec.inputs = {tensor_spec("z", DType::kComplex64, {{2, 2, ""}})};
  InputOptions options;
  options.files = {"z=" + folder.write("z.json", "[[1, 2], [3, -4]]")};
  const Tensor t = make_inputs(spec, options)[0];
  CHECK(to_string(t.sizes()) == "[2]");
  CHECK(t.data_as<float>()[3] == -4);
}

TEST_CASE("inputs: tensors are laid out in the strides that the package recorded") {
  const ScratchFolder folder;
  ModelSpec spec;
  // Channels last, with a batch of any size.
  spec.inputs = {tensor_spec("x", DType::kFloat32, {{2, 8, "s0"}, {2, 2, ""}, {2, 2, ""}}, {std::nullopt, 1, 2})};
  const int64_t sizes[] = {2, 2, 2};
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int i = 0; i < 8; ++i) t.data_as<float>()[i] = static_cast<float>(i);
  write_npy(folder / "x.npy", t);
  InputOptions options;
  options.files = {folder / "x.npy"};
  const Tensor got = make_inputs(spec, options)[0];
  CHECK(to_string(got.strides()) == "[4, 1, 2]");
  CHECK(floats(got) == std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  options.files = {};
  CHECK(to_string(make_inputs(spec, options)[0].strides()) == "[4, 1, 2]");
}

TEST_CASE("inputs: a file of several tensors, whole or by name") {
  const ScratchFolder folder;
  const int64_t batch[] = {2}, rows[] = {2, 3};
  const NamedTensor tensors[] = {{"arg1_1", Tensor::empty(batch, DType::kBool)},
                                 {"arg0_1", Tensor::empty(rows, DType::kFloat32)}};
  std::memset(tensors[0].tensor.data(), 0, 2);
  std::memset(tensors[1].tensor.data(), 0, 24);
  write_safetensors(folder / "all.safetensors", tensors);
  InputOptions options;
  options.files = {folder / "all.safetensors"};
  CHECK(make_inputs(two_inputs(), options)[0].dim() == 2);
  options.files = {"arg0_1=" + (folder / "all.safetensors"), "arg1_1=" + (folder / "all.safetensors")};
  CHECK(make_inputs(two_inputs(), options)[1].dtype() == DType::kBool);
}

TEST_CASE("inputs: errors name the input or the argument") {
  const ScratchFolder folder;
  const auto refused = [](const ModelSpec& spec, InputOptions options, const char* reason) {
    CHECK_THROWS_WITH_AS(make_inputs(spec, options), doctest::Contains(reason), Error);
  };
  const std::string x = folder.write("x.json", "[[1, 2, 3]]"), bad = folder.write("bad.json", "[[1, 2, 3], [4]]");
  refused(two_inputs(), {{"arg0_1=" + x}, {}, 0}, "no file given for input: INPUT__1");
  refused(two_inputs(), {{"other=" + x}, {}, 0}, "no such input: other");
  refused(two_inputs(), {{"arg0_1=" + x, "INPUT__0=" + x}, {}, 0}, "given twice: INPUT__0");
  refused(two_inputs(), {{"arg0_1=/no/such.npy"}, {}, 0}, "/no/such.npy");
  CHECK_THROWS_AS(make_inputs(two_inputs(), {{"arg0_1=" + bad}, {}, 0}), Error);
  for (const char* size : {"s0", "s0=", "=1", "s0=x", "s0=-1", "s0=1x", ""})
    refused(two_inputs(), {{}, {size}, 0}, "--size takes");
  ModelSpec unknown = two_inputs();
  unknown.inputs[0].has_shape = false;
  refused(unknown, {}, "does not record dtype and shape");
}

}  // namespace sconce::server::cli
