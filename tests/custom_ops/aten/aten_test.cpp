// Tests ATen's operators through their boxed form and their schemas, with the cases in
// tests/data/{aten,movement,functions,lists,by_name,earlier,vision}.cases. make_aten_cases.py, make_function_cases.py,
// make_by_name_cases.py, make_earlier_cases.py and make_vision_cases.py write these.
#include "src/custom_ops/aten/aten.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "sconce/random.h"
#include "src/custom_ops/registry.h"
#include "src/device/device_backend.h"
#include "tests/cpu/case_file.h"

namespace sconce::custom_ops {
namespace {

Value boxed_value(const Type& type, testing::Value& value) {
  if (value.none()) return {};
  switch (type.kind) {
    case TypeKind::kOptional:
      return boxed_value(*type.element, value);
    case TypeKind::kTensor:
      return Value::borrow(value.tensor());
    case TypeKind::kFloat:
      return value.real();
    case TypeKind::kBool:
      return value.boolean();
    case TypeKind::kDevice:
      return parse_device(value.text());
    case TypeKind::kString:
      return value.text();
    case TypeKind::kScalar:
      if (const bool* flag = std::get_if<bool>(&value.held)) return *flag;
      if (const double* number = std::get_if<double>(&value.held)) return *number;
      if (const auto* number = std::get_if<std::complex<double>>(&value.held)) return *number;
      return value.integer();
    case TypeKind::kList: {
      if (type.element->kind == TypeKind::kInt) return value.integers();
      if (type.element->kind == TypeKind::kFloat) {
        Value::Reals reals;
        for (const testing::Value& item : value.list()) reals.push_back(item.real());
        return reals;
      }
      Value::List items;
      for (testing::Value& item : std::get<testing::Values>(value.held))
        items.push_back(boxed_value(*type.element, item));
      return items;
    }
    default:
      return value.integer();
  }
}

constexpr std::string_view kLater = "by_name.cases";

Tensor flag_tensor(bool flag) {
  Tensor tensor = Tensor::empty({}, DType::kBool);
  *tensor.data_as<bool>() = flag;
  return tensor;
}

std::vector<Tensor> call(const Operator& op, testing::Case& c) {
  const Schema& schema = op.schema();
  REQUIRE(c.args.size() == schema.arguments.size());
  std::vector<Value> arguments, results(schema.results.size());
  for (size_t i = 0; i < c.args.size(); ++i) arguments.push_back(boxed_value(schema.arguments[i].type, c.args[i]));
  check_arguments(schema, arguments);
  op.call(arguments, results);
  std::vector<Tensor> tensors;
  for (Value& result : results) {
    if (Value::List* items = result.get_if<Value::List>()) {
      for (Value& item : *items) tensors.push_back(item.tensor());
    } else if (const bool* flag = result.get_if<bool>()) {
      tensors.push_back(flag_tensor(*flag));
    } else if (result.tensor().defined()) {
      tensors.push_back(result.tensor());
    }
  }
  return tensors;
}

// Runs each row's cases, which are in `file` or in by_name.cases.
void run_rows(std::string_view file, std::span<const AtenRow> rows) {
  for (const AtenRow& row : rows) {
    const std::string_view schema = row.schema;
    const std::string name(schema.substr(0, schema.find('(')));
    CAPTURE(name);
    const auto op = find_operator(name);
    REQUIRE(op);
    const bool there = file != kLater && !testing::cases_of(file, name).empty();
    testing::run_cases(there ? file : kLater, name, [&](testing::Case& c) {
      manual_seed(1234);
      return call(*op, c);
    });
  }
}

// Runs the cases of every row that has some in the file.
size_t run_file(std::string_view file) {
  size_t operators = 0;
  for (const auto rows :
       {aten_tensor_rows(), aten_movement_rows(), aten_math_rows(), aten_function_rows(), aten_elementwise_rows(),
        aten_reduction_rows(), aten_layer_rows(), aten_gradient_rows(), aten_list_rows(), aten_linalg_rows(),
        aten_random_rows(), aten_earlier_rows(), quantised_rows()})
    for (const AtenRow& row : rows) {
      const std::string_view schema = row.schema;
      const std::string name(schema.substr(0, schema.find('(')));
      CAPTURE(name);
      if (testing::cases_of(file, name).empty()) continue;
      ++operators;
      testing::run_cases(file, name, [&](testing::Case& c) { return call(*find_operator(name), c); });
    }
  return operators;
}

}  // namespace

TEST_CASE("aten: makers, views and copies, as PyTorch") { run_rows("aten.cases", aten_tensor_rows()); }
TEST_CASE("aten: gathering and scattering, as PyTorch") { run_rows("movement.cases", aten_movement_rows()); }
TEST_CASE("aten: arithmetic, products, sets, as PyTorch") { run_rows("aten.cases", aten_math_rows()); }
TEST_CASE("aten: functions and reductions, of complex numbers too, as PyTorch") {
  run_rows("functions.cases", aten_function_rows());
}
TEST_CASE("aten: functions of elements, as PyTorch") { run_rows(kLater, aten_elementwise_rows()); }
TEST_CASE("aten: reductions, as PyTorch") { run_rows(kLater, aten_reduction_rows()); }
TEST_CASE("aten: layers, as PyTorch") { run_rows(kLater, aten_layer_rows()); }
TEST_CASE("aten: gradients and losses, as PyTorch") { run_rows(kLater, aten_gradient_rows()); }
TEST_CASE("aten: lists of tensors, as PyTorch") { run_rows("lists.cases", aten_list_rows()); }
TEST_CASE("aten: linear algebra and Fourier transforms, as PyTorch") { run_rows("aten.cases", aten_linalg_rows()); }
TEST_CASE("aten: random operators, as PyTorch") { run_rows("aten.cases", aten_random_rows()); }
TEST_CASE("aten: what earlier versions of PyTorch call by name") { run_rows("earlier.cases", aten_earlier_rows()); }
TEST_CASE("aten: what Inductor has code for, as PyTorch") { run_rows("lowered.cases", aten_lowered_rows()); }
TEST_CASE("aten: operators of the compiler's own, as PyTorch") { run_rows("inductor.cases", inductor_rows()); }

TEST_CASE("vision: torchvision's operators, as torchvision") { run_rows("vision.cases", vision_rows()); }

TEST_CASE("aten: what quantisers export, as PyTorch") {
  size_t operators = 0;
  for (const AtenRow& row : quantised_rows()) {
    const std::string_view schema = row.schema;
    const std::string name(schema.substr(0, schema.find('(')));
    CAPTURE(name);
    if (name.starts_with("onednn::")) continue;  // opaque weight: tests/cpu/layers/wrapped_linear_test.cpp
    ++operators;
    testing::run_cases("by_name_quantised.cases", name,
                       [&](testing::Case& c) { return call(*find_operator(name), c); });
  }
  CHECK(operators == 21);
}
TEST_CASE("aten: what random samples of operators found, as PyTorch") { CHECK(run_file("opinfo.cases") >= 20); }
TEST_CASE("aten: what draws of sums, norms and losses found, as PyTorch") {
  CHECK(run_file("drawn_reductions.cases") == 25);
}

// Failures that tests/truth found: tests/data/found_elements.cases, written by make_found_cases.py.
namespace {

void run_found(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    CAPTURE(name);
    const std::string full = std::string("aten::") + name;
    const auto op = find_operator(full);
    REQUIRE(op);
    testing::run_cases("found_elements.cases", full, [&](testing::Case& c) {
      manual_seed(1234);
      return call(*op, c);
    });
  }
}

}  // namespace

TEST_CASE("found: scalar grids leave out what lies outside") { run_found({"_grid_sampler_2d_cpu_fallback"}); }
TEST_CASE("found: slopes are laid out like their first operand") {
  run_found({"_prelu_kernel", "log_sigmoid_backward"});
}
TEST_CASE("found: nearest places of float64 are found in double") {
  run_found({"_upsample_nearest_exact1d", "_upsample_nearest_exact3d"});
}
TEST_CASE("found: a factor of nothing need not fit the dtype") { run_found({"index_add"}); }
TEST_CASE("found: complex quotients by zeros of any sign") { run_found({"div.Tensor", "addcdiv", "reciprocal"}); }
TEST_CASE("found: hyperbolic functions, log1p and softplus beyond where SLEEF's vectors end") {
  run_found({"cosh", "sinh", "asinh", "acosh", "log1p", "special_xlog1py", "softplus"});
}
TEST_CASE("found: comparisons and leaky_relu_backward lay results out by their operands in order") {
  run_found({"gt.Tensor", "ge.Tensor", "lt.Tensor", "le.Tensor", "leaky_relu_backward"});
}
TEST_CASE("found: a number beside half floats is rounded to them, but where it divides") {
  run_found({"eq.Scalar", "ne.Scalar", "lt.Scalar", "le.Scalar", "gt.Scalar", "ge.Scalar", "eq.Tensor", "ne.Tensor",
             "remainder.Tensor", "fmod.Tensor", "div.Scalar", "div.Scalar_mode", "div.Tensor_mode", "addcmul",
             "addcdiv", "floor_divide", "isin.Scalar_Tensor", "isin.Tensor_Tensor"});
}
TEST_CASE("found: bounds of clamp beyond an integer's range drop out, or are refused") {
  run_found({"clamp", "clamp_min", "clamp_max", "_foreach_maximum.Scalar"});
}
TEST_CASE("found: lcm of small integers wraps as int's") { run_found({"lcm"}); }
TEST_CASE("found: dtypes and special numbers of ldexp, lerp, pow, logaddexp and _add_relu") {
  run_found({"ldexp.Tensor", "lerp.Tensor", "lerp.Scalar", "pow.Tensor_Scalar", "pow.Scalar", "logaddexp",
             "_add_relu.Tensor", "_add_relu.Scalar"});
}
TEST_CASE("found: numbers that half floats do not hold, as tensors of no dimension and complex halves") {
  run_found({"fill.Scalar", "scalar_tensor", "full"});
}
TEST_CASE("found: NaN, bounds of half floats and dtypes in the gradients of activations") {
  run_found({"hardswish_backward", "hardtanh_backward", "hardshrink_backward", "softshrink_backward", "hardshrink",
             "mish_backward"});
}
TEST_CASE("found: resizing to the nearest goes by the scale where ATen does, gradients are laid out as its are") {
  run_found({"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_nearest3d_backward",
             "_upsample_nearest_exact3d_backward", "_upsample_bilinear2d_aa_backward",
             "_upsample_bicubic2d_aa_backward", "_upsample_lanczos2d_aa_backward"});
}
TEST_CASE("found: fake quantisation of double precision, of NaN, of zero points between two points") {
  run_found({"fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
             "fake_quantize_per_channel_affine_cachemask"});
}
TEST_CASE("found: gamma samples of double precision, bernoulli in the layout of its first tensor") {
  run_found({"_standard_gamma", "_sample_dirichlet", "bernoulli.Tensor"});
}

// CPU kernels get copies of device tensors, never device addresses. Here the device's library is missing, so copying
// fails. Operators that draw random numbers are refused, because the host's generator is not the device's.
TEST_CASE("aten: memory of a device is not read") {
  float memory[2] = {1, 2};
  const int64_t sizes[] = {2}, strides[] = {1};
  Tensor elsewhere = Tensor::from_blob(memory, sizes, strides, DType::kFloat32, Device{DeviceType::kCuda, 1});
  const auto unique = find_operator("aten::_unique2"), poisson = find_operator("aten::poisson");
  REQUIRE(unique);
  REQUIRE(poisson);
  std::vector<Value> results(unique->schema().results.size());
  std::vector<Value> arguments{Value::borrow(elsewhere), true, true, true};
  const bool none = !why_no_device(DeviceType::kCuda).empty();
  if (none) CHECK_THROWS_WITH_AS(unique->call(arguments, results), doctest::Contains("CUDA devices"), Error);
  std::vector<Value> drawn(1), draw{Value::borrow(elsewhere), Value()};
  CHECK_THROWS_WITH_AS(poisson->call(draw, drawn),
                       doctest::Contains(none ? "CUDA devices" : "draws random numbers and has no kernel for cuda:1"),
                       Error);
}

}  // namespace sconce::custom_ops
